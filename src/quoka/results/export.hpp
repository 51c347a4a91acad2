#pragma once

#include <ostream>
#include <span>
#include <string>

#include "quoka/results/results.hpp"

namespace quoka {

/// Writes the tidy table: a header, then one line per (config, capture, layer, q_head) that exists,
/// with labels, parameters, layer facts and metrics. NaN is an empty field; numbers are the
/// shortest text that reads back the same.
///
/// columns names the metrics to write; empty means all.
/// Throws: ConfigError naming a metric that does not exist.
void write_csv(const Results& results, std::span<const std::string> columns, std::ostream& out);

}  // namespace quoka
