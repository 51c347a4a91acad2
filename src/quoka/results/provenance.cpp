#include "quoka/results/provenance.hpp"

#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>

#include "quoka/core/build_info.hpp"

namespace quoka {
namespace {

/// "model name : ..." of the first processor; "unknown" where /proc does not say.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    return "unknown";
  }
  return name.data();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Provenance local_provenance() {
  const BuildInfo& build = build_info();
  Provenance provenance;
  provenance.created_utc = utc_now();
  provenance.host = host_name();
  provenance.cpu = cpu_model();
  provenance.version = build.version;
  provenance.commit = build.commit;
  provenance.compiler = build.compiler;
  provenance.flags = build.flags;
  provenance.packages = build.packages;
  return provenance;
}

}  // namespace quoka
