#pragma once

/// The one table of the parameters of a configuration: name, help, how to read and print each. The
/// configuration file, the command line, the results file and the identity of a configuration all
/// come from it. Adding a parameter is adding a row.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/selection/config.hpp"

namespace quoka {

/// One row of the table.
struct Parameter {
  std::string_view name;
  std::string_view help;  ///< one line, with the allowed values
  bool is_number;         ///< its coordinate in a results file is numeric
  std::string (*print)(const SelectorConfig&);
  void (*parse)(std::string_view name, std::string_view text, SelectorConfig&);
  /// False where the value cannot change what the configuration does (folded away).
  bool (*matters)(const SelectorConfig&);

  /// Sets the parameter in the configuration. Throws: ConfigError naming parameter and value.
  void read(std::string_view text, SelectorConfig& config) const { parse(name, text, config); }
};

/// All parameters, in the order in which configurations are printed and sorted.
std::span<const Parameter> parameters();

/// The parameter of that name, or nullptr.
const Parameter* find_parameter(std::string_view name);

/// Names of the selectors with one line each, for --list-selectors.
std::vector<std::pair<std::string_view, std::string_view>> selector_descriptions();

/// The value as text, or "" if the parameter does not matter to this configuration.
std::string effective_value(const SelectorConfig& config, const Parameter& parameter);

/// The configuration with every parameter that does not matter set back to its default.
SelectorConfig canonical(const SelectorConfig& config);

/// "selector=quoka chunk_size=128 budget=256 ...": the parameters that matter, in table order.
/// Equal texts are the same configuration.
std::string canonical_text(const SelectorConfig& config);

/// First 10 hexadecimal digits of the SHA-256 of canonical_text: the label of the configuration in
/// results files.
std::string config_id(const SelectorConfig& config);

/// True if the configuration keeps query rows by their similarity to a mean query.
bool uses_mean_query(const SelectorConfig& config);

/// Throws: ConfigError if values that are each allowed do not fit together.
void check_consistent(const SelectorConfig& config);

}  // namespace quoka
