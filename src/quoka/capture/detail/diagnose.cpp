#include "quoka/capture/detail/diagnose.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "quoka/capture/detail/search.hpp"
#include "quoka/capture/detail/trial.hpp"
#include "quoka/core/error.hpp"

namespace quoka::capture_detail {
namespace {

struct Cause {
  Trial trial;
  std::string text;
};

std::vector<Index> all_heads(const LayerSample& sample) {
  std::vector<Index> heads(sample.heads.size());
  std::iota(heads.begin(), heads.end(), Index{0});
  return heads;
}

// Failed heads, spread over the layer: what does not fit them need not be tried on the others.
std::vector<Index> screening_heads(const LayerCheck& check) {
  std::vector<Index> failed;
  for (const HeadCheck& head : check.heads) {
    if (!head.passed) {
      failed.push_back(head.head);
    }
  }
  constexpr std::size_t n_screened = 3;
  std::vector<Index> chosen;
  const std::size_t n = std::min(n_screened, failed.size());
  for (std::size_t i = 0; i < n; ++i) {
    chosen.push_back(failed[i * failed.size() / n]);
  }
  return chosen;
}

class Diagnosis {
 public:
  Diagnosis(LayerSample sample, std::vector<Index> screened, const CaptureInfo& info)
      : sample_(std::move(sample)), screened_(std::move(screened)), info_(info) {
    original_ = misfit(sample_, stored(), screened_);
  }

  std::string run() {
    add_scales();
    add_softcaps();
    add_windows();
    add_alibi();
    add_swap();
    if (const auto found = best_fit()) {
      return *found;
    }
    add_sinks();
    add_head_mapping();
    if (const auto found = best_fit()) {
      return *found;
    }
    add_stages();
    if (const auto found = best_fit()) {
      return *found;
    }
    return fmt::format(
        "recomputed output differs, likely stage mismatch: no other scale, cap, sinks, window, "
        "bias, head mapping, swap of k and v, rotation or length of q fits (best misfit {:.2g}, "
        "stored attributes {:.2g}); capture q, k and v as the attention function receives them",
        closest_, original_);
  }

 private:
  [[nodiscard]] Trial stored() const { return stored_trial(sample_.layer); }
  [[nodiscard]] const AttentionRules& rules() const { return sample_.layer.rules; }

  void add(Trial trial, std::string text) {
    causes_.push_back({std::move(trial), std::move(text)});
  }

  // The cause with the smallest misfit, if it fits all heads and explains most of the difference.
  std::optional<std::string> best_fit() {
    constexpr double clearly_better = 0.25;
    constexpr double equally_good = 1.2;
    constexpr double negligible = 1e-6;
    if (causes_.empty()) {
      return {};
    }
    std::vector<std::pair<double, const Cause*>> ranked;
    for (const Cause& cause : causes_) {
      ranked.emplace_back(misfit(sample_, cause.trial, screened_), &cause);
    }
    const double best =
        std::ranges::min(ranked, {}, [](const auto& entry) { return entry.first; }).first;
    closest_ = std::min(closest_, best);
    std::optional<std::string> found;
    for (const auto& [error, cause] : ranked) {
      // Among equally good ones the first: a round number before one that was searched for.
      if (error > sample_.tolerance || error > clearly_better * original_ ||
          error > equally_good * best + negligible) {
        continue;
      }
      const double everywhere = misfit(sample_, cause->trial, all_heads(sample_));
      if (everywhere <= sample_.tolerance) {
        found =
            fmt::format("{} (misfit {:.2g} instead of {:.2g})", cause->text, everywhere, original_);
        break;
      }
    }
    causes_.clear();
    return found;
  }

  void add_scale(double scale, const std::string& how) {
    Trial trial = stored();
    trial.rules.scale = scale;
    add(trial,
        fmt::format("softmax_scale {:.9g} is wrong: {:.9g} fits ({})", rules().scale, scale, how));
  }

  void add_scales() {
    const double root = std::sqrt(static_cast<double>(sample_.layer.shape.k_head_dim));
    add_scale(rules().scale * 2, "2 times as much");
    add_scale(rules().scale / 2, "half of it");
    add_scale(1 / root, "1 / sqrt(k_head_dim)");
    add_scale(rules().scale * root, "sqrt(k_head_dim) times as much");
    add_scale(rules().scale / root, "1 / sqrt(k_head_dim) of it");
    add_scale(1, "no scaling");
    const double best = best_rule(rules().scale / 64, rules().scale * 64, &AttentionRules::scale);
    add_scale(best, fmt::format("{:.6g} times as much", best / rules().scale));
  }

  // The value of one number of the rules with the smallest misfit.
  [[nodiscard]] double best_rule(double lowest, double highest,
                                 double AttentionRules::*member) const {
    return best_positive(lowest, highest, [&](double value) {
      Trial trial = stored();
      trial.rules.*member = value;
      return misfit(sample_, trial, screened_);
    });
  }

  void add_softcap(double cap) {
    Trial trial = stored();
    trial.rules.softcap = cap;
    add(trial,
        fmt::format("the output was made with the logits capped at {:.6g}, the file says {}", cap,
                    rules().softcap > 0 ? fmt::format("{:g}", rules().softcap)
                                        : std::string("no cap (softcap_applied 0)")));
  }

  void add_softcaps() {
    if (rules().softcap > 0) {
      Trial trial = stored();
      trial.rules.softcap = 0;
      add(trial, fmt::format("softcap dropped: the output was made without the cap {:g} that "
                             "softcap_applied promises",
                             rules().softcap));
    }
    for (const double cap : {sample_.layer.logit_softcap,
                             config_number(info_.config_json, "attn_logit_softcapping"), 50.0}) {
      if (cap > 0 && cap != rules().softcap) {
        add_softcap(cap);
      }
    }
    add_softcap(best_rule(1, 1000, &AttentionRules::softcap));
  }

  void add_window(Index window) {
    const Index stored_window = rules().sliding_window;
    if (window == stored_window || window < 0) {
      return;
    }
    Trial trial = stored();
    trial.rules.sliding_window = window;
    const bool is_off_by_one = window > 0 && std::abs(window - stored_window) == 1;
    add(trial, fmt::format("sliding_window {} is wrong{}: {} fits (0 = none; a query's own key "
                           "counts)",
                           stored_window, is_off_by_one ? " by one" : "", window));
  }

  void add_windows() {
    const auto configured = static_cast<Index>(config_number(info_.config_json, "sliding_window"));
    if (rules().sliding_window > 0) {
      add_window(rules().sliding_window - 1);
      add_window(rules().sliding_window + 1);
    }
    add_window(0);
    if (configured > 0) {
      for (const Index window : {configured, configured - 1, configured + 1}) {
        add_window(window);
      }
    }
    for (const Index chunk :
         {Index{0}, static_cast<Index>(config_number(info_.config_json, "attention_chunk_size"))}) {
      if (chunk != rules().attention_chunk) {
        Trial trial = stored();
        trial.rules.attention_chunk = chunk;
        add(trial, fmt::format("attention_chunk {} is wrong: {} fits (0 = none)",
                               rules().attention_chunk, chunk));
      }
    }
  }

  void add_alibi() {
    for (const Alibi alibi : {Alibi::none, Alibi::plain, Alibi::scaled}) {
      if (rules().alibi != Alibi::none && alibi != rules().alibi) {
        Trial trial = stored();
        trial.rules.alibi = alibi;
        add(trial, fmt::format("the ALiBi bias is wrong: the output was made {}",
                               alibi == Alibi::none    ? "without it"
                               : alibi == Alibi::plain ? "with alibi_scaled 0"
                                                       : "with alibi_scaled 1"));
      }
    }
  }

  void add_swap() {
    if (sample_.layer.shape.k_head_dim == sample_.layer.shape.v_head_dim &&
        sample_.layer.v_equals_k_prefix == 0) {
      Trial trial = stored();
      trial.swaps_k_and_v = true;
      add(trial, "k and v are swapped");
    }
  }

  // A sink shrinks every row of a head by exp(lse) / (exp(lse) + exp(sink)): the sink that the row
  // with the strongest effect needs.
  [[nodiscard]] float fitted_sink(const HeadSample& head) const {
    Trial trial = stored();
    trial.rules.sinks.clear();
    const TrialRows rows = replay_rows(sample_, trial, head);
    double strongest = 1e-3;  // a weaker effect cannot be told from rounding
    double sink = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < rows.lse.size(); ++i) {
      const auto lse = static_cast<double>(rows.lse[i]);
      const double keep =
          head.lse.size() > 0
              ? std::exp(lse - static_cast<double>(head.lse[i]))
              : static_cast<double>(rows.out.row(i).dot(head.out.row(i))) /
                    std::max(static_cast<double>(rows.out.row(i).squaredNorm()), 1e-30);
      if (1 - keep > strongest && keep > 1e-3) {
        strongest = 1 - keep;
        sink = lse + std::log(1 / keep - 1);
      }
    }
    return static_cast<float>(sink);
  }

  void add_sinks() {
    Trial trial = stored();
    if (!rules().sinks.empty()) {
      trial.rules.sinks.clear();
      add(trial, "sinks dropped: the output was made without the sinks that has_sinks promises");
      trial.rules.sinks = rules().sinks;
      for (float& sink : trial.rules.sinks) {
        sink = -sink;
      }
      add(trial, "the sinks have the wrong sign");
    }
    trial.rules.sinks.clear();
    for (const HeadSample& head : sample_.heads) {
      trial.rules.sinks.push_back(fitted_sink(head));
    }
    add(trial,
        fmt::format("sinks {}: the output was made with a sink logit per query head of about [{}]",
                    rules().sinks.empty() ? "dropped, the file has none (has_sinks 0)" : "wrong",
                    first_numbers(trial.rules.sinks)));
  }

  static std::string first_numbers(const std::vector<float>& numbers) {
    std::string text;
    constexpr std::size_t n_shown = 8;
    for (std::size_t i = 0; i < std::min(n_shown, numbers.size()); ++i) {
      text += fmt::format("{}{:.4g}", i == 0 ? "" : ", ", numbers[i]);
    }
    return text + (numbers.size() > n_shown ? ", ..." : "");
  }

  // Which KV head fits each query head best.
  void add_head_mapping() {
    const Index n_kv_heads = sample_.layer.shape.n_kv_heads;
    Trial found = stored();
    for (const HeadSample& head : sample_.heads) {
      double best = std::numeric_limits<double>::infinity();
      for (Index kv_head = 0; kv_head < n_kv_heads; ++kv_head) {
        Trial trial = stored();
        trial.kv_heads.assign(trial.kv_heads.size(), kv_head);
        const double error = misfit(sample_, trial, {head.q_head});
        if (error < best) {
          best = error;
          found.kv_heads[static_cast<std::size_t>(head.q_head)] = kv_head;
        }
      }
    }
    if (found.kv_heads != stored().kv_heads) {
      add(found, mapping_text(found.kv_heads));
    }
  }

  [[nodiscard]] std::string mapping_text(const std::vector<Index>& kv_heads) const {
    const Index n_kv_heads = sample_.layer.shape.n_kv_heads;
    std::vector<Index> order = all_heads(sample_);
    const bool is_interleaved = std::ranges::all_of(order, [&](Index head) {
      return kv_heads[static_cast<std::size_t>(head)] == head % n_kv_heads;
    });
    std::ranges::stable_sort(order, {},
                             [&](Index head) { return kv_heads[static_cast<std::size_t>(head)]; });
    return fmt::format(
        "head mapping {}: query heads read KV heads [{}], the format has contiguous groups of {}; "
        "store the query heads of q, out, lse and sinks in the order [{}]",
        is_interleaved ? "interleaved (query head h reads KV head h mod n_kv_heads)" : "is wrong",
        fmt::join(kv_heads, ", "), sample_.layer.shape.group_size(), fmt::join(order, ", "));
  }

  void add_stages() {
    const bool has_out = sample_.layer.has_out;  // a factor per row would fit any lse
    if (has_out) {
      Trial trial = stored();
      trial.rescales_rows = true;
      add(trial,
          "q is of the stage before normalisation (a factor of its own for each row of q fits)");
    }
    for (const Rotary& rotary : rotary_candidates(sample_.layer, info_.config_json)) {
      Trial trial = stored();
      trial.rotate_k = rotary;
      add(trial, fmt::format("k is of the stage before rotation ({} fits)", rotary.name));
      trial.rotate_q = rotary;
      add(trial, fmt::format("q and k are of the stage before rotation ({} fits)", rotary.name));
      trial.rotate_k.reset();
      add(trial, fmt::format("q is of the stage before rotation ({} fits)", rotary.name));
      if (has_out) {
        trial.rescales_rows = true;
        add(trial, fmt::format("q is of the stage before normalisation and before rotation (a "
                               "factor of its own for each row of q and {} fit)",
                               rotary.name));
      }
    }
  }

  LayerSample sample_;
  std::vector<Index> screened_;
  const CaptureInfo& info_;
  double original_ = 0;
  double closest_ = std::numeric_limits<double>::infinity();
  std::vector<Cause> causes_;
};

}  // namespace

std::string diagnose_layer(const CaptureReader& reader, const CaptureLayer& layer,
                           const LayerCheck& check) {
  std::vector<Index> worst_rows;
  for (const HeadCheck& head : check.heads) {
    worst_rows.push_back(head.worst_token - layer.rules.q_offset);
  }
  return Diagnosis(read_sample(reader, layer, worst_rows), screening_heads(check), reader.info())
      .run();
}

}  // namespace quoka::capture_detail
