#pragma once

/// The proof that a capture is right: attention replayed from the stored q, k and v must give the
/// stored output. Comes in: an open capture. Goes out: errors per head, a verdict per layer, and
/// for a layer that fails the most likely cause.

#include <string>
#include <vector>

#include "quoka/capture/reader.hpp"

namespace quoka {

enum class Verdict { passed, failed, no_reference };

/// "passed", "failed" or "no reference".
std::string_view name_of(Verdict verdict);

/// One query head. Lower is better everywhere; a number without its reference tensor is NaN.
struct HeadCheck {
  Index head = 0;
  double out_error = 0;      ///< norm(replayed - stored) / norm(stored), all rows of the head
  double out_tolerance = 0;  ///< passes up to here
  double lse_error = 0;      ///< root mean square over rows of the difference of lse
  double lse_tolerance = 0;
  Index worst_token = 0;   ///< position of the row with the largest error (of out; of lse without)
  double worst_error = 0;  ///< norm of its difference / norm of the row or of a typical row
  double worst_tolerance = 0;
  bool passed = false;
};

struct LayerCheck {
  Index layer_idx = 0;
  Verdict verdict = Verdict::no_reference;
  std::vector<HeadCheck> heads;  ///< empty without a reference, or if a tensor cannot be used
  std::string cause;             ///< of a failure: what is probably wrong, "" otherwise
};

struct VerifyReport {
  /// failed if a layer failed; else no_reference if a layer has none; else passed.
  Verdict verdict = Verdict::no_reference;
  std::vector<LayerCheck> layers;

  [[nodiscard]] double worst_out_error() const;  ///< over all heads; NaN if there is none
  [[nodiscard]] double worst_lse_error() const;
};

/// Replays every layer in float32 and compares with the stored out and lse.
///
/// Let u be the unit roundoff of a number format (2^-11 float16, 2^-8 bfloat16, 2^-24 float32) and
/// s = scale * sqrt(sum over channels of mean(q^2) * mean(k^2)): a relative rounding of u in q or k
/// moves a logit by about u * s. Tolerances:
/// - out_kind fp32_from_stored: out was computed from these very tensors, so only its own rounding
///   and float32 arithmetic remain: out 2 u(out) + 64 u(float32) (1 + s), lse 64 u(float32)
///   (1 + s + |lse|). A single row may be 10 times worse.
/// - model_native: the model saw q and k unrounded, and worked in its own precision: out and lse
///   4 u (1 + s) with the coarsest u of storage, out and compute_dtype, at most 0.1. A single row
///   may be 10 times worse, or 0.5.
///
/// Cost: one dense pass over the capture, n_threads threads; memory of one KV head and its query
/// heads. A layer that fails costs up to a few hundred evaluations of 16 rows more, with k and v
/// of the whole layer in memory.
VerifyReport verify_capture(const CaptureReader& reader, int n_threads);

}  // namespace quoka
