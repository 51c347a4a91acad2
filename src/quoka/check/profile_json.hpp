#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "quoka/check/profile.hpp"

namespace quoka {

/// The profile as JSON, one row per line (docs/new-model.md lists the keys). Equal profiles give
/// equal bytes.
std::string profile_json(const Profile& profile);

/// Reads what profile_json wrote, edited by hand or not. Strict: a repeated, unknown or missing
/// key, a wrong type or a value that cannot be is refused with its place, for example
/// "p.json, rows[3].expected". where names the text in messages.
///
/// Throws: FormatError.
Profile parse_profile(const std::string& where, std::string_view text);

/// Throws: FormatError if the file does not exist or parse_profile refuses it; IoError if it cannot
/// be read.
Profile read_profile(const std::filesystem::path& path);

}  // namespace quoka
