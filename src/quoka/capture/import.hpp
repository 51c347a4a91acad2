#pragma once

#include <filesystem>

namespace quoka {

/// Turns a safetensors file into a capture and opens the result once, with all of its checks.
///
/// Tensors: layers.LLL.q, k, v, out (F16, BF16 or F32), lse, sinks, alibi_slopes (F32), tokens.ids,
/// tokens.positions (I32 or I64), tokens.offsets (I64), annotations.start, end, kind, group (I32 or
/// I64). __metadata__ holds every attribute of the capture format as a text under its name, those
/// of a layer as layers.LLL.NAME, and config_json and prompt_text. Bits are kept.
///
/// Throws: FormatError naming tensor or attribute for everything that is missing, unknown or does
///         not fit; ConfigError if the output exists; IoError. No output is left then.
void import_safetensors(const std::filesystem::path& from, const std::filesystem::path& path);

}  // namespace quoka
