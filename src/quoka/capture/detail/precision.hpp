#pragma once

// Private to the capture room: how far a replay may be from the stored output; see verify.hpp.

#include "quoka/capture/schema.hpp"

namespace quoka::capture_detail {

// What the tolerances of one layer depend on, besides the size of its logits.
struct Precision {
  bool is_native = false;  // out_kind model_native
  double out = 0;          // unit roundoff of out
  double coarsest = 0;     // largest unit roundoff of q, k, v, out and of the model's computation
};

Precision precision_of(const CaptureLayer& layer, const std::string& compute_dtype);

// How much a relative rounding in every element of q or k moves a logit, relative to the rounding.
double logit_sensitivity(double scale, const VectorD& q_mean_square, const VectorD& k_mean_square);

double out_tolerance(const Precision& precision, double sensitivity);
double lse_tolerance(const Precision& precision, double sensitivity, double typical_lse);
double row_tolerance(const Precision& precision, double tolerance);

// For attributes that are tried instead of the stored ones, and for tensors that were rounded
// before a step of the model that is tried: rounding of q and k counts in any case.
double loose_tolerance(const Precision& precision, double sensitivity);

VectorD mean_squares(const Matrix& rows);

}  // namespace quoka::capture_detail
