#include "quoka/capture/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/dense.hpp"
#include "quoka/capture/detail/diagnose.hpp"
#include "quoka/capture/detail/precision.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"

namespace quoka {
namespace {

using namespace capture_detail;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// One KV head with its query heads and their stored output.
struct Group {
  std::vector<Matrix> q;
  Matrix k;
  Matrix v;
  std::vector<Matrix> out;  // empty without
  std::vector<Vector> lse;  // empty without

  [[nodiscard]] GroupView view_of(Index kv_head) const {
    GroupView result{{}, view(k), view(v), kv_head};
    for (const Matrix& head : q) {
      result.q.push_back(view(head));
    }
    return result;
  }
};

// Squares of differences and of norms, per row of one query head.
struct RowErrors {
  explicit RowErrors(Index n_rows)
      : out_difference(VectorD::Zero(n_rows)),
        out_norm(VectorD::Zero(n_rows)),
        lse_difference(VectorD::Zero(n_rows)) {}
  VectorD out_difference;
  VectorD out_norm;
  VectorD lse_difference;
};

Vector read_lse_checked(const CaptureReader& reader, const CaptureLayer& layer, Index head) {
  Vector lse = reader.read_lse(layer.layer_idx, head, {0, layer.shape.n_tokens});
  for (Index row = 0; row < lse.size(); ++row) {
    require<FormatError>(std::isfinite(lse[row]),
                         "{}: layer {}, lse, head {}, token {}: value {}; make the capture again",
                         reader.path().string(), layer.layer_idx, head, row + layer.rules.q_offset,
                         lse[row]);
  }
  return lse;
}

Group read_group(const CaptureReader& reader, const CaptureLayer& layer, Index kv_head) {
  Group group;
  const Index group_size = layer.shape.group_size();
  for (Index head = kv_head * group_size; head < (kv_head + 1) * group_size; ++head) {
    group.q.push_back(reader.read_head_checked(layer.layer_idx, Tensor::q, head));
    if (layer.has_out) {
      group.out.push_back(reader.read_head_checked(layer.layer_idx, Tensor::out, head));
    }
    if (layer.has_lse) {
      group.lse.push_back(read_lse_checked(reader, layer, head));
    }
  }
  group.k = reader.read_head_checked(layer.layer_idx, Tensor::k, kv_head);
  group.v = reader.read_head_checked(layer.layer_idx, Tensor::v, kv_head);
  return group;
}

// Rows of a block: the probabilities of a block of all query heads fill some 32 MiB.
Index block_rows(const AttentionShape& shape) {
  constexpr Index max_floats = Index{8} << 20;
  return std::clamp<Index>(max_floats / (shape.group_size() * shape.n_keys), 1, 128);
}

void compare_block(const Group& group, const DenseChunk& chunk, std::vector<RowErrors>& errors) {
  const Index n_rows = chunk.rows.size();
  for (std::size_t head = 0; head < errors.size(); ++head) {
    const Index first = static_cast<Index>(head) * n_rows;
    for (Index i = 0; i < n_rows; ++i) {
      const Index row = chunk.rows.begin + i;
      if (!group.out.empty()) {
        const auto stored = group.out[head].row(row).cast<double>();
        errors[head].out_difference[row] =
            (chunk.out.row(first + i).cast<double>() - stored).squaredNorm();
        errors[head].out_norm[row] = stored.squaredNorm();
      }
      if (!group.lse.empty()) {
        const double difference =
            static_cast<double>(chunk.lse[first + i]) - static_cast<double>(group.lse[head][row]);
        errors[head].lse_difference[row] = difference * difference;
      }
    }
  }
}

std::vector<RowErrors> replay_group(const Group& group, const CaptureLayer& layer, Index kv_head,
                                    int n_threads) {
  const Index n_tokens = layer.shape.n_tokens;
  std::vector<RowErrors> errors(group.q.size(), RowErrors(n_tokens));
  const GroupView heads = group.view_of(kv_head);
  const Index rows = block_rows(layer.shape);
  parallel_for((n_tokens + rows - 1) / rows, n_threads, [&](Index block, int /*thread*/) {
    const IndexRange range{block * rows, std::min(n_tokens, (block + 1) * rows)};
    compare_block(group, dense_chunk(heads, layer.rules, range), errors);
  });
  return errors;
}

// Relative to the row, or to a typical row where the row is nearly zero.
void find_worst_row(const RowErrors& errors, bool has_out, HeadCheck& check) {
  const double typical = errors.out_norm.mean();
  for (Index row = 0; row < errors.out_norm.size(); ++row) {
    const double norm = std::max({errors.out_norm[row], typical, 1e-60});
    const double error =
        std::sqrt(has_out ? errors.out_difference[row] / norm : errors.lse_difference[row]);
    if (error > check.worst_error) {
      check.worst_error = error;
      check.worst_token = row;
    }
  }
}

HeadCheck judge_head(const Group& group, const CaptureLayer& layer, const Precision& precision,
                     std::size_t head, const RowErrors& errors) {
  HeadCheck check;
  const double sensitivity =
      logit_sensitivity(layer.rules.scale, mean_squares(group.q[head]), mean_squares(group.k));
  check.out_error = not_a_number;
  check.lse_error = not_a_number;
  check.out_tolerance = out_tolerance(precision, sensitivity);
  bool passed = true;
  if (layer.has_out) {
    const double norm = errors.out_norm.sum();
    const double difference = errors.out_difference.sum();
    check.out_error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    passed = check.out_error <= check.out_tolerance;
  }
  if (layer.has_lse) {
    const double typical = std::sqrt(group.lse[head].cast<double>().squaredNorm() /
                                     static_cast<double>(group.lse[head].size()));
    check.lse_tolerance = lse_tolerance(precision, sensitivity, typical);
    check.lse_error = std::sqrt(errors.lse_difference.mean());
    const double row_limit = row_tolerance(precision, check.lse_tolerance);
    passed = passed && check.lse_error <= check.lse_tolerance &&
             std::sqrt(errors.lse_difference.maxCoeff()) <= row_limit;
  }
  find_worst_row(errors, layer.has_out, check);
  check.worst_token += layer.rules.q_offset;
  check.worst_tolerance =
      row_tolerance(precision, layer.has_out ? check.out_tolerance : check.lse_tolerance);
  check.passed = passed && check.worst_error <= check.worst_tolerance;
  return check;
}

void check_heads(const CaptureReader& reader, const CaptureLayer& layer, int n_threads,
                 LayerCheck& check) {
  const Precision precision = precision_of(layer, reader.info().compute_dtype);
  for (Index kv_head = 0; kv_head < layer.shape.n_kv_heads; ++kv_head) {
    const Group group = read_group(reader, layer, kv_head);
    const std::vector<RowErrors> errors = replay_group(group, layer, kv_head, n_threads);
    for (std::size_t head = 0; head < errors.size(); ++head) {
      check.heads.push_back(judge_head(group, layer, precision, head, errors[head]));
      check.heads.back().head = kv_head * layer.shape.group_size() + static_cast<Index>(head);
    }
  }
}

LayerCheck check_layer(const CaptureReader& reader, const CaptureLayer& layer, int n_threads) {
  LayerCheck check;
  check.layer_idx = layer.layer_idx;
  try {
    if (!layer.has_out && !layer.has_lse) {
      return check;
    }
    check_heads(reader, layer, n_threads, check);
    const bool passed = std::ranges::all_of(check.heads, &HeadCheck::passed);
    check.verdict = passed ? Verdict::passed : Verdict::failed;
    if (!passed) {
      check.cause = diagnose_layer(reader, layer, check);
    }
  } catch (const FormatError& error) {  // NaN, a damaged chunk: this layer's, others may be right
    check.verdict = Verdict::failed;
    check.heads.clear();
    check.cause = error.what();
  }
  return check;
}

double worst(const VerifyReport& report, double HeadCheck::*error) {
  double result = not_a_number;
  for (const LayerCheck& layer : report.layers) {
    for (const HeadCheck& head : layer.heads) {
      result = std::fmax(result, head.*error);
    }
  }
  return result;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::failed:
      return "failed";
    case Verdict::no_reference:
      return "no reference";
  }
  return "";
}

double VerifyReport::worst_out_error() const { return worst(*this, &HeadCheck::out_error); }

double VerifyReport::worst_lse_error() const { return worst(*this, &HeadCheck::lse_error); }

VerifyReport verify_capture(const CaptureReader& reader, int n_threads) {
  VerifyReport report;
  for (const CaptureLayer& layer : reader.layers()) {
    report.layers.push_back(check_layer(reader, layer, n_threads));
  }
  const auto any = [&](Verdict verdict) {
    return std::ranges::find(report.layers, verdict, &LayerCheck::verdict) != report.layers.end();
  };
  report.verdict = any(Verdict::failed)         ? Verdict::failed
                   : any(Verdict::no_reference) ? Verdict::no_reference
                                                : Verdict::passed;
  return report;
}

}  // namespace quoka
