#pragma once

/// What is remembered of a verification. Captures are immutable, so it lies in a small JSON file
/// beside the capture, and holds only for the bytes that were verified.

#include <filesystem>
#include <string>
#include <string_view>

#include "quoka/capture/verify.hpp"

namespace quoka {

/// "<capture>.verified.json", beside the capture.
std::filesystem::path verified_path(const std::filesystem::path& capture);

/// Writes it: SHA-256 of the capture, verdict, worst errors, failed layers with causes, program
/// version, date. Throws: IoError.
void write_verified_state(const std::filesystem::path& capture, std::string_view sha256,
                          const VerifyReport& report);

/// "passed", "failed", "no reference", or "not verified" if there is no such file, it is not
/// readable, or it is of other bytes than those with this SHA-256. Never throws for what it finds.
std::string verified_state(const std::filesystem::path& capture, std::string_view sha256);

/// The report as JSON: verdict and errors of every head. NaN is null.
std::string verify_report_json(const std::filesystem::path& capture, std::string_view sha256,
                               const VerifyReport& report);

}  // namespace quoka
