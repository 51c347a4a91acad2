#include "quoka/capture/detail/precision.hpp"

#include <algorithm>
#include <cmath>

namespace quoka::capture_detail {
namespace {

constexpr double roundoff_float16 = 0x1p-11;
constexpr double roundoff_bfloat16 = 0x1p-8;
constexpr double roundoff_float32 = 0x1p-24;

// Sums of a few hundred float32 products lose some ten roundoffs; two such computations meet here.
constexpr double arithmetic = 64 * roundoff_float32;
// Rounding of q and of k, before and after the model's own steps: four independent ones.
constexpr double n_roundings = 4;
// An output that is a tenth off is wrong whatever the precision.
constexpr double largest_tolerance = 0.1;

double roundoff(StorageType storage) {
  switch (storage) {
    case StorageType::float16:
      return roundoff_float16;
    case StorageType::bfloat16:
    case StorageType::tagged_bfloat16:
      return roundoff_bfloat16;
    case StorageType::float32:
      return roundoff_float32;
  }
  return 0;
}

double roundoff(std::string dtype, double otherwise) {
  dtype = dtype.substr(dtype.rfind('.') + 1);  // "torch.bfloat16"
  return dtype == "float16"    ? roundoff_float16
         : dtype == "bfloat16" ? roundoff_bfloat16
         : dtype == "float32"  ? roundoff_float32
                               : otherwise;
}

}  // namespace

Precision precision_of(const CaptureLayer& layer, const std::string& compute_dtype) {
  const double storage = roundoff(layer.storage);
  const double out = roundoff(layer.out_storage.value_or(layer.storage));
  return {layer.out_kind == "model_native", out,
          std::max({storage, out, roundoff(compute_dtype, storage)})};
}

double logit_sensitivity(double scale, const VectorD& q_mean_square, const VectorD& k_mean_square) {
  return scale * std::sqrt(q_mean_square.dot(k_mean_square));
}

double loose_tolerance(const Precision& precision, double sensitivity) {
  return std::min(n_roundings * precision.coarsest * (1 + sensitivity), largest_tolerance);
}

double out_tolerance(const Precision& precision, double sensitivity) {
  return precision.is_native ? loose_tolerance(precision, sensitivity)
                             : 2 * precision.out + arithmetic * (1 + sensitivity);
}

double lse_tolerance(const Precision& precision, double sensitivity, double typical_lse) {
  return precision.is_native ? loose_tolerance(precision, sensitivity)
                             : arithmetic * (1 + sensitivity + typical_lse);
}

double row_tolerance(const Precision& precision, double tolerance) {
  constexpr double row_factor = 10;
  constexpr double native_row = 0.5;  // outlier rows have logits far larger than the head's
  return precision.is_native ? std::max(row_factor * tolerance, native_row)
                             : row_factor * tolerance;
}

VectorD mean_squares(const Matrix& rows) {
  return rows.cast<double>().array().square().colwise().mean().matrix().transpose();
}

}  // namespace quoka::capture_detail
