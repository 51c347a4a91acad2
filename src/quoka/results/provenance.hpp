#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// One layer of one capture that could not be computed.
struct FailedUnit {
  std::string capture;  ///< stem
  Index layer_idx = 0;
  std::string reason;

  bool operator==(const FailedUnit&) const = default;
};

/// Where a results file comes from. The only part that differs between two runs of one sweep.
struct Provenance {
  std::string config_text;  ///< effective configuration as TOML
  std::string plan_hash;
  std::string command_line;
  std::string created_utc;  ///< "2026-01-31T12:00:00Z"
  std::string host;
  std::string cpu;
  std::string version;
  std::string commit;
  std::string compiler;
  std::string flags;
  std::string packages;
  Index threads = 0;
  Index units_total = 0;  ///< a unit is one layer of one capture
  Index units_done = 0;
  std::vector<FailedUnit> failed;
};

/// The text datasets of /provenance.
constexpr std::array<std::pair<std::string_view, std::string Provenance::*>, 11> provenance_texts{{
    {"config_text", &Provenance::config_text},
    {"plan_hash", &Provenance::plan_hash},
    {"command_line", &Provenance::command_line},
    {"created_utc", &Provenance::created_utc},
    {"host", &Provenance::host},
    {"cpu", &Provenance::cpu},
    {"version", &Provenance::version},
    {"commit", &Provenance::commit},
    {"compiler", &Provenance::compiler},
    {"flags", &Provenance::flags},
    {"packages", &Provenance::packages},
}};

/// Fills in what the program and the machine know: build, host, CPU, time.
Provenance local_provenance();

/// Name of this machine.
std::string host_name();

/// The time now as "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace quoka
