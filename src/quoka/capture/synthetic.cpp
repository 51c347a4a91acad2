#include "quoka/capture/synthetic.hpp"

#include <algorithm>
#include <cmath>

#include "quoka/capture/writer.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/random.hpp"

namespace quoka {
namespace {

// Sizes of the structure: ours, chosen so that 4k captures look like the middle layers of small
// models.
constexpr Index n_sinks = 4;
constexpr Index n_clusters = 32;
constexpr Index cluster_run = 64;  // neighbouring tokens share a cluster
constexpr std::uint64_t outlier_one_in = 16;
constexpr Index needle_length = 8;
constexpr Index question_length = 16;
constexpr Index min_keys_for_needle = 64;
constexpr Index block_rows = 1024;  // the chunk of the file

// Logits, in units after scaling, on top of noise of standard deviation about 1.
constexpr double sink_logit = 8;
constexpr double cluster_logit = 7;
constexpr double needle_logit = 12;
constexpr double query_mean_length = 1.5;  // of the mean query, relative to its noise

// What a stream of random numbers is for; a tensor's noise has its own stream per head.
enum Stream : std::int64_t {
  q_noise,
  k_noise,
  v_noise,
  mean_direction,
  needle_direction,
  cluster_direction,
  cluster_value,
  token_cluster,
  query_is_outlier,
  query_target,
  sink_value,
};

struct Source {
  std::uint64_t seed = 0;
  Index layer = 0;
  Index head = 0;

  [[nodiscard]] std::uint64_t bits(Stream stream, Index position) const {
    return random_bits({seed, layer, stream, head, position});
  }

  /// About normal, mean 0 and variance 1: eight 16-bit uniform numbers, summed as integers.
  [[nodiscard]] double normal(Stream stream, Index position) const {
    std::int64_t sum = 0;
    for (const Index draw : {2 * position, 2 * position + 1}) {
      const std::uint64_t word = bits(stream, draw);
      for (int shift = 0; shift < 64; shift += 16) {
        sum += static_cast<std::int64_t>((word >> shift) & 0xffff);
      }
    }
    constexpr double mean = 8 * 65535 / 2.0;
    constexpr double deviation = 53509.9;  // sqrt(8 * (65536^2 - 1) / 12)
    return (static_cast<double>(sum) - mean) / deviation;
  }

  /// A vector of squared length n_columns, about.
  [[nodiscard]] Eigen::RowVectorXd direction(Stream stream, Index number, Index n_columns) const {
    Eigen::RowVectorXd values(n_columns);
    for (Index column = 0; column < n_columns; ++column) {
      values[column] = normal(stream, number * n_columns + column);
    }
    return values;
  }
};

// What rows of one KV head and its query heads have in common.
struct HeadStructure {
  Source source;
  Eigen::RowVectorXd mean;  // unit length, like all directions
  Eigen::RowVectorXd needle;
  MatrixD clusters;        // [n_clusters, k_head_dim]
  MatrixD cluster_values;  // [n_clusters, v_head_dim], not of unit length
  IndexRange needle_tokens;
  IndexRange question_tokens;

  [[nodiscard]] Index cluster_of(Index token) const {
    return static_cast<Index>(source.bits(token_cluster, token / cluster_run) % n_clusters);
  }
};

Index n_keys_of(const SyntheticOptions& options) {
  return options.rules.q_offset + options.n_tokens;
}

// Squared lengths are summed in a fixed order, so that every machine rounds alike.
Eigen::RowVectorXd unit(const Eigen::RowVectorXd& vector) {
  double squares = 0;
  for (const double value : vector) {
    squares += value * value;
  }
  return vector / std::sqrt(squares);
}

HeadStructure make_structure(const SyntheticOptions& options, Index layer_idx, Index kv_head) {
  const Source source{options.seed, layer_idx, kv_head};
  const Index n_columns = options.k_head_dim;
  HeadStructure made;
  made.source = source;
  made.mean = unit(source.direction(mean_direction, 0, n_columns));
  made.needle = unit(source.direction(needle_direction, 0, n_columns));
  made.clusters.resize(n_clusters, n_columns);
  made.cluster_values.resize(n_clusters, options.v_head_dim);
  for (Index cluster = 0; cluster < n_clusters; ++cluster) {
    made.clusters.row(cluster) = unit(source.direction(cluster_direction, cluster, n_columns));
    made.cluster_values.row(cluster) = source.direction(cluster_value, cluster, options.v_head_dim);
  }
  for (const Annotation& annotation : synthetic_annotations(options)) {
    (annotation.kind == AnnotationKind::needle ? made.needle_tokens : made.question_tokens) =
        annotation.tokens;
  }
  return made;
}

// Keys have noise of variance 1 per channel and a part of length sqrt(k_head_dim) along a
// direction, so that a query part of length L / scale / sqrt(k_head_dim) along it has the logit L.
Eigen::RowVectorXd key_part(const HeadStructure& structure, Index token) {
  const double length = std::sqrt(static_cast<double>(structure.mean.size()));
  if (token < n_sinks) {
    return structure.mean * (sink_logit / query_mean_length);
  }
  if (structure.needle_tokens.contains(token)) {
    return structure.needle * length;
  }
  // A little against the mean query: what is not a sink gets less of typical queries.
  constexpr double against_mean = 0.25;
  return structure.clusters.row(structure.cluster_of(token)) * length -
         structure.mean * (against_mean * length);
}

// In units where the scale is 1 / sqrt(k_head_dim).
Eigen::RowVectorXd query_part(const HeadStructure& structure, const Source& source, Index token) {
  const double length = std::sqrt(static_cast<double>(structure.mean.size()));
  if (structure.question_tokens.contains(token)) {
    return structure.needle * needle_logit;
  }
  if (token >= n_sinks && source.bits(query_is_outlier, token) % outlier_one_in == 0) {
    const auto target =
        static_cast<Index>(source.bits(query_target, token) % static_cast<std::uint64_t>(token));
    return structure.clusters.row(structure.cluster_of(target)) * cluster_logit;
  }
  return structure.mean * (query_mean_length * length);
}

// Rounded to multiples of 2^-12, which hides last-bit differences between compilers (fused
// multiply-add).
double on_grid(double value) { return std::nearbyint(value * 4096) / 4096; }

}  // namespace

CaptureLayer synthetic_layer(const SyntheticOptions& options, Index layer_idx) {
  require<ConfigError>(
      options.n_tokens >= 1 && options.k_head_dim >= 1 && options.v_head_dim >= 1 &&
          options.n_layers >= 1 && options.rules.q_offset >= 0,
      "a synthetic capture of {} tokens at offset {}, {} layers and head sizes {} and "
      "{} is not possible; use positive numbers",
      options.n_tokens, options.rules.q_offset, options.n_layers, options.k_head_dim,
      options.v_head_dim);
  require<ConfigError>(options.n_kv_heads >= 1 && options.n_q_heads >= 1 &&
                           options.n_q_heads % options.n_kv_heads == 0,
                       "{} query heads are not a multiple of {} KV heads; choose a multiple",
                       options.n_q_heads, options.n_kv_heads);
  CaptureLayer layer;
  layer.layer_idx = layer_idx;
  layer.shape = {options.n_q_heads,  options.n_kv_heads, options.n_tokens,
                 n_keys_of(options), options.k_head_dim, options.v_head_dim};
  layer.rules = options.rules;
  if (layer.rules.scale == 0) {
    layer.rules.scale = 1 / std::sqrt(static_cast<double>(options.k_head_dim));
  }
  layer.logit_softcap = options.rules.softcap;
  layer.softcap_applied = options.rules.softcap > 0;
  layer.storage = options.storage;
  layer.rules.alibi = options.alibi;
  if (options.alibi != Alibi::none) {
    layer.position_kind = "alibi";
  }
  for (Index head = 0; head < options.n_q_heads; ++head) {
    if (options.with_sinks) {
      const Source source{options.seed, layer_idx, head};
      layer.rules.sinks.push_back(
          static_cast<float>(on_grid(sink_logit + source.normal(sink_value, 0))));
    }
    if (options.alibi != Alibi::none) {
      // The slopes of the ALiBi paper: 2^(-8 (h + 1) / n_q_heads).
      const double exponent =
          -8.0 * static_cast<double>(head + 1) / static_cast<double>(options.n_q_heads);
      layer.rules.alibi_slopes.push_back(static_cast<float>(std::exp2(exponent)));
    }
  }
  return layer;
}

Matrix synthetic_rows(const SyntheticOptions& options, Index layer_idx, Tensor tensor, Index head,
                      IndexRange rows) {
  QUOKA_ASSERT(tensor != Tensor::out);
  const CaptureLayer layer = synthetic_layer(options, layer_idx);
  const bool is_query = tensor == Tensor::q;
  const Index kv_head = is_query ? head / layer.shape.group_size() : head;
  const HeadStructure structure = make_structure(options, layer_idx, kv_head);
  const Source source{options.seed, layer_idx, head};
  const Index n_columns = quoka::n_columns(layer.shape, tensor);
  // Queries are stretched so that logits do not depend on the scale.
  const double stretch =
      is_query ? 1 / (layer.rules.scale * std::sqrt(static_cast<double>(n_columns))) : 1;
  const Stream noise = is_query ? q_noise : tensor == Tensor::k ? k_noise : v_noise;
  Matrix values(rows.size(), n_columns);
  for (Index row = rows.begin; row < rows.end; ++row) {
    const Index token = row + (is_query ? options.rules.q_offset : 0);
    Eigen::RowVectorXd part;
    if (is_query) {
      part = query_part(structure, source, token);
    } else if (tensor == Tensor::k) {
      part = key_part(structure, token);
    } else {
      part = structure.cluster_values.row(structure.cluster_of(token));
    }
    for (Index column = 0; column < n_columns; ++column) {
      const double value = part[column] + source.normal(noise, token * n_columns + column);
      values(row - rows.begin, column) = static_cast<float>(on_grid(value) * stretch);
    }
  }
  return values;
}

std::vector<Annotation> synthetic_annotations(const SyntheticOptions& options) {
  const Index n_keys = n_keys_of(options);
  if (n_keys < min_keys_for_needle || options.n_tokens < question_length) {
    return {};
  }
  const Index needle_begin = n_keys / 3;
  return {{{needle_begin, needle_begin + needle_length}, AnnotationKind::needle, 0, "needle"},
          {{n_keys - question_length, n_keys}, AnnotationKind::question, 0, "question"}};
}

void write_synthetic_capture(const std::filesystem::path& path, const SyntheticOptions& options) {
  CaptureInfo info;
  info.created_utc = "1970-01-01T00:00:00Z";  // fixed: the same options give the same bytes
  info.creator = "quoka";
  info.model_id = fmt::format("synthetic-seed-{}", options.seed);
  info.model_revision = "1";
  info.model_type = "synthetic";
  info.compute_dtype = "float64";
  info.num_hidden_layers = options.n_layers;
  CaptureTokens tokens;
  for (Index token = 0; token < n_keys_of(options); ++token) {
    tokens.ids.push_back(static_cast<std::int32_t>(token % 32768));
    tokens.positions.push_back(static_cast<std::int32_t>(token));
  }
  const CaptureLayer first =
      synthetic_layer(options, 0);  // checks the options before a file exists
  CaptureWriter writer(path, info, tokens);
  for (Index layer_idx = 0; layer_idx < options.n_layers; ++layer_idx) {
    writer.add_layer(layer_idx == 0 ? first : synthetic_layer(options, layer_idx));
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
      for (Index head = 0; head < n_heads(first.shape, tensor); ++head) {
        const Index end = n_rows(first.shape, tensor);
        for (Index begin = 0; begin < end; begin += block_rows) {
          const IndexRange rows{begin, std::min(begin + block_rows, end)};
          writer.write_rows(tensor, head, rows,
                            synthetic_rows(options, layer_idx, tensor, head, rows));
        }
      }
    }
  }
  writer.write_annotations(synthetic_annotations(options));
  writer.commit();
}

}  // namespace quoka
