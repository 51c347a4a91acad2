#pragma once

#include <optional>

#include "common/exit_codes.hpp"
#include "quoka_capture/options.hpp"

namespace quoka::apps {

enum class ProbeDepth {
  structure,  ///< what inspect reads
  tensors,    ///< everything, as the other verbs read it
};

/// Opens the file for the first time in a child process (this program again, with limits of memory
/// and time and without the right to write files): the HDF5 library may crash or hang on damaged
/// files, and then only the child does.
///
/// Returns nothing if the child read the file without trouble; else what this process must end
/// with, after the child's messages were printed. Throws: FormatError if the child crashed or took
/// too long; IoError if there can be no child.
std::optional<int> probe_in_child(const CaptureArguments& arguments, ProbeDepth depth);

/// What the child does.
void probe(const CaptureArguments& arguments);

}  // namespace quoka::apps
