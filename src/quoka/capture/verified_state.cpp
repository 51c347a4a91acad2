#include "quoka/capture/verified_state.hpp"

#include <array>
#include <ctime>
#include <fstream>
#include <iterator>

#include "quoka/capture/detail/json.hpp"
#include "quoka/core/atomic_file.hpp"
#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

using capture_detail::json_number;
using capture_detail::json_quoted;

constexpr std::string_view state_format = "quoka-verified 1";
constexpr std::string_view not_verified = "not verified";
constexpr std::uintmax_t max_bytes = 1 << 20;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

std::string layer_json(const LayerCheck& layer, bool with_heads) {
  std::string text = fmt::format("{{\"layer\": {}, \"verdict\": \"{}\", \"cause\": {}",
                                 layer.layer_idx, name_of(layer.verdict), json_quoted(layer.cause));
  if (with_heads) {
    text += ", \"heads\": [";
    for (std::size_t i = 0; i < layer.heads.size(); ++i) {
      const HeadCheck& head = layer.heads[i];
      text += fmt::format(
          "{}\n      {{\"head\": {}, \"passed\": {}, \"out_error\": {}, \"out_tolerance\": {}, "
          "\"lse_error\": {}, \"lse_tolerance\": {}, \"worst_token\": {}, \"worst_error\": {}}}",
          i == 0 ? "" : ",", head.head, head.passed, json_number(head.out_error),
          json_number(head.out_tolerance), json_number(head.lse_error),
          json_number(head.lse_tolerance), head.worst_token, json_number(head.worst_error));
    }
    text += "]";
  }
  return text + "}";
}

std::string report_json(const std::filesystem::path& capture, std::string_view sha256,
                        const VerifyReport& report, bool with_heads) {
  std::string layers;
  for (const LayerCheck& layer : report.layers) {
    if (with_heads || layer.verdict != Verdict::passed) {
      layers += (layers.empty() ? "\n    " : ",\n    ") + layer_json(layer, with_heads);
    }
  }
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"capture\": {},\n  \"capture_sha256\": \"{}\",\n"
      "  \"verdict\": \"{}\",\n  \"n_layers\": {},\n  \"worst_out_error\": {},\n"
      "  \"worst_lse_error\": {},\n  \"program_version\": {},\n  \"checked_utc\": \"{}\",\n"
      "  \"{}\": [{}]\n}}\n",
      state_format, json_quoted(capture.filename().string()), sha256, name_of(report.verdict),
      report.layers.size(), json_number(report.worst_out_error()),
      json_number(report.worst_lse_error()), json_quoted(build_info().version), utc_now(),
      with_heads ? "layers" : "layers_not_passed", layers);
}

std::string text_member(const capture_detail::JsonValue& state, std::string_view name) {
  const capture_detail::JsonValue* member = state.find(name);
  const std::string* text = member == nullptr ? nullptr : member->get<std::string>();
  return text == nullptr ? "" : *text;
}

}  // namespace

std::filesystem::path verified_path(const std::filesystem::path& capture) {
  return capture.string() + ".verified.json";
}

void write_verified_state(const std::filesystem::path& capture, std::string_view sha256,
                          const VerifyReport& report) {
  write_file_atomically(verified_path(capture), report_json(capture, sha256, report, false));
}

std::string verified_state(const std::filesystem::path& capture, std::string_view sha256) {
  const std::filesystem::path path = verified_path(capture);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || size > max_bytes || !file) {
    return std::string(not_verified);
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const capture_detail::JsonValue state = capture_detail::parse_json(path.string(), text);
    const std::string verdict = text_member(state, "verdict");
    for (const Verdict known : {Verdict::passed, Verdict::failed, Verdict::no_reference}) {
      if (text_member(state, "format") == state_format && verdict == name_of(known) &&
          text_member(state, "capture_sha256") == sha256) {
        return verdict;
      }
    }
  } catch (const FormatError&) {  // a damaged note is no note
  }
  return std::string(not_verified);
}

std::string verify_report_json(const std::filesystem::path& capture, std::string_view sha256,
                               const VerifyReport& report) {
  return report_json(capture, sha256, report, true);
}

}  // namespace quoka
