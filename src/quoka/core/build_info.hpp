#pragma once

#include <string_view>

namespace quoka {

/// What built this library; every results file records it.
struct BuildInfo {
  std::string_view version;   ///< of the project, for example "0.1.0"
  std::string_view commit;    ///< git commit at configure time, "-dirty" if the tree was changed
  std::string_view compiler;  ///< name and version
  std::string_view flags;     ///< compile flags of the configuration
  std::string_view packages;  ///< versions of the libraries
};

const BuildInfo& build_info();

}  // namespace quoka
