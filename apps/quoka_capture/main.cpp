// quoka-capture: looks into captures, verifies, imports and cuts them.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "common/exit_codes.hpp"
#include "common/printable.hpp"
#include "common/program.hpp"
#include "quoka/capture/import.hpp"
#include "quoka/capture/inspect.hpp"
#include "quoka/capture/verified_state.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "quoka_capture/options.hpp"
#include "quoka_capture/probe.hpp"

namespace {

using namespace quoka;
using namespace quoka::apps;

/// Prints what may hold texts of a file.
void print_text(const std::string& text) { print_out(printable(text)); }

ExitCode inspect(const CaptureArguments& arguments) {
  const CaptureReader reader(arguments.input, arguments.limits);
  print_text(arguments.json ? inspect_json(reader) : inspect_text(reader));
  return exit_done;
}

/// One line per layer: the head that is nearest to its tolerance, or farthest beyond.
std::string layer_line(const LayerCheck& layer) {
  std::string text = fmt::format("layer {:3}  {}", layer.layer_idx, name_of(layer.verdict));
  const HeadCheck* worst = nullptr;
  for (const HeadCheck& head : layer.heads) {
    const auto badness = [](const HeadCheck& h) { return std::fmax(h.out_error, h.lse_error); };
    if (worst == nullptr || badness(head) > badness(*worst)) {
      worst = &head;
    }
  }
  if (worst != nullptr) {
    text += fmt::format("  worst head {}:", worst->head);
    if (!std::isnan(worst->out_error)) {
      text +=
          fmt::format(" out error {:.2e} (up to {:.2e})", worst->out_error, worst->out_tolerance);
    }
    if (!std::isnan(worst->lse_error)) {
      text +=
          fmt::format(" lse error {:.2e} (up to {:.2e})", worst->lse_error, worst->lse_tolerance);
    }
    text += fmt::format(", worst token {} ({:.2e})", worst->worst_token, worst->worst_error);
  }
  if (layer.verdict == Verdict::no_reference) {
    text += "  neither out nor lse is stored, so there is nothing to compare with";
  }
  return text + (layer.cause.empty() ? "" : "\n           " + layer.cause) + "\n";
}

/// The verdict is printed already, so a folder without the right to write is no failure.
void record(const std::string& capture, const std::string& sha256, const VerifyReport& report) {
  try {
    write_verified_state(capture, sha256, report);
  } catch (const IoError& error) {
    fmt::print(stderr, "quoka-capture: the verdict is not noted: {}; --no-record does without\n",
               printable(error.what()));
  }
}

ExitCode verify(const CaptureArguments& arguments) {
  const CaptureReader reader(arguments.input, arguments.limits);
  const std::string sha256 = sha256_of_file(arguments.input);
  const VerifyReport report = verify_capture(reader, arguments.n_threads);
  if (arguments.json) {
    print_text(verify_report_json(arguments.input, sha256, report));
  } else {
    std::string text;
    for (const LayerCheck& layer : report.layers) {
      text += layer_line(layer);
    }
    print_text(fmt::format("{}{}: {}\n", text, arguments.input, name_of(report.verdict)));
  }
  if (arguments.record) {
    record(arguments.input, sha256, report);
  }
  switch (report.verdict) {
    case Verdict::passed:
      return exit_done;
    case Verdict::failed:
      return exit_failed;
    case Verdict::no_reference:
      return exit_bad_input;
  }
  return exit_internal;
}

void checksum(const CaptureArguments& arguments) {
  const CaptureReader reader(arguments.input, arguments.limits);
  std::string text = fmt::format("{}  {}\n", sha256_of_file(arguments.input), arguments.input);
  for (const TensorChecksum& tensor : tensor_checksums(reader)) {
    text += fmt::format("{}  {}\n", tensor.sha256, tensor.name);
  }
  print_text(text);
}

/// How much of a capture is read first in a child process; nothing if that is not needed.
std::optional<ProbeDepth> probe_depth(const CaptureArguments& arguments) {
  const CaptureVerb verb = arguments.verb;
  if (arguments.trusted || verb == CaptureVerb::none || verb == CaptureVerb::import ||
      verb == CaptureVerb::probe) {
    return std::nullopt;
  }
  return verb == CaptureVerb::inspect ? ProbeDepth::structure : ProbeDepth::tensors;
}

int run_program(int argc, const char* const* argv) {
  const CaptureArguments arguments = parse_arguments(argc, argv);
  if (const auto depth = probe_depth(arguments)) {
    if (const auto code = probe_in_child(arguments, *depth)) {
      return *code;
    }
  }
  switch (arguments.verb) {
    case CaptureVerb::none:
      break;
    case CaptureVerb::inspect:
      return inspect(arguments);
    case CaptureVerb::verify:
      return verify(arguments);
    case CaptureVerb::import:
      import_safetensors(arguments.input, arguments.output);
      break;
    case CaptureVerb::cut:
      cut_capture(CaptureReader(arguments.input, arguments.limits), arguments.output,
                  arguments.cut);
      break;
    case CaptureVerb::checksum:
      checksum(arguments);
      break;
    case CaptureVerb::probe:
      probe(arguments);
      break;
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (...) {
    return quoka::apps::report_exception("quoka-capture");
  }
}
