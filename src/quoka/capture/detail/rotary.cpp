#include "quoka/capture/detail/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "quoka/capture/detail/json.hpp"
#include "quoka/core/error.hpp"

namespace quoka::capture_detail {
namespace {

// One set of rotary parameters, in the words of Hugging Face configurations.
struct RopeParameters {
  double theta = 0;
  std::string type = "default";
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_length = 8192;
  double partial = 1;  // share of the channels that are rotated
  bool operator==(const RopeParameters&) const = default;
};

double number_or(const JsonValue& object, std::string_view name, double otherwise) {
  const JsonValue* value = object.find(name);
  const double number = value == nullptr ? 0 : value->number();
  return number > 0 ? number : otherwise;
}

void read_scaling(const JsonValue& object, RopeParameters& rope) {
  for (const char* name : {"rope_type", "type"}) {
    const JsonValue* type = object.find(name);
    if (type != nullptr && type->get<std::string>() != nullptr) {
      rope.type = *type->get<std::string>();
    }
  }
  rope.factor = number_or(object, "factor", rope.factor);
  rope.low_freq_factor = number_or(object, "low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = number_or(object, "high_freq_factor", rope.high_freq_factor);
  rope.original_length =
      number_or(object, "original_max_position_embeddings", rope.original_length);
  rope.partial = number_or(object, "partial_rotary_factor", rope.partial);
}

// Every object with a base frequency, however deep (models with several kinds of layers nest them).
void collect(const JsonValue& value, double partial, std::vector<RopeParameters>& found) {
  partial = number_or(value, "partial_rotary_factor", partial);
  for (const char* name : {"rope_theta", "rope_local_base_freq"}) {
    RopeParameters rope;
    rope.theta = number_or(value, name, 0);
    rope.partial = partial;
    if (rope.theta > 0) {
      const JsonValue* scaling = value.find("rope_scaling");
      read_scaling(scaling == nullptr ? value : *scaling, rope);
      if (std::ranges::find(found, rope) == found.end()) {
        found.push_back(rope);
      }
    }
  }
  if (const auto* object = value.get<JsonValue::Object>()) {
    for (const auto& [key, member] : *object) {
      collect(member, partial, found);
    }
  }
}

// Llama 3.1: low frequencies are divided by the factor, high ones kept, those between blended.
double llama3_frequency(const RopeParameters& rope, double frequency) {
  const double turns = rope.original_length * frequency / (2 * std::numbers::pi);
  const double keep = std::clamp(
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0);
  return frequency * (keep + (1 - keep) / rope.factor);
}

Rotary make_rotary(const RopeParameters& rope, Index head_dim, RotaryPairs pairs) {
  Rotary rotary;
  rotary.pairs = pairs;
  const double n_rotated = std::floor(rope.partial * static_cast<double>(head_dim) / 2) * 2;
  for (double c = 0; c < n_rotated; c += 2) {
    const double frequency = std::pow(rope.theta, -c / n_rotated);
    rotary.frequencies.push_back(rope.type == "linear"   ? frequency / rope.factor
                                 : rope.type == "llama3" ? llama3_frequency(rope, frequency)
                                                         : frequency);
  }
  rotary.name = fmt::format("rope_theta {:g}{}", rope.theta,
                            pairs == RotaryPairs::neighbours ? ", pairs of neighbours" : "");
  return rotary;
}

// The texts are documentation, so a broken one is no error: it just tells nothing.
JsonValue parse_or_nothing(const std::string& text) {
  try {
    return text.empty() ? JsonValue{} : parse_json("text", text);
  } catch (const FormatError&) {
    return {};
  }
}

}  // namespace

void rotate(const Rotary& rotary, std::span<const std::int32_t> positions, Matrix& rows) {
  const auto n_pairs = std::min<Index>(std::ssize(rotary.frequencies), rows.cols() / 2);
  const bool halves = rotary.pairs == RotaryPairs::halves;
  for (Index row = 0; row < rows.rows(); ++row) {
    const double position = positions[static_cast<std::size_t>(row)];
    for (Index pair = 0; pair < n_pairs; ++pair) {
      const double angle = position * rotary.frequencies[static_cast<std::size_t>(pair)];
      float& x = rows(row, halves ? pair : 2 * pair);
      float& y = rows(row, halves ? pair + n_pairs : 2 * pair + 1);
      const double turned =
          static_cast<double>(x) * std::cos(angle) - static_cast<double>(y) * std::sin(angle);
      y = static_cast<float>(static_cast<double>(y) * std::cos(angle) +
                             static_cast<double>(x) * std::sin(angle));
      x = static_cast<float>(turned);
    }
  }
}

std::vector<Rotary> rotary_candidates(const CaptureLayer& layer, const std::string& config_json) {
  std::vector<RopeParameters> found;
  collect(parse_or_nothing(layer.rope_json), 1, found);
  collect(parse_or_nothing(config_json), 1, found);
  if (found.empty()) {
    for (const double theta : {1e4, 5e5, 1e6}) {
      found.emplace_back().theta = theta;
    }
  }
  std::vector<Rotary> rotaries;
  for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::neighbours}) {
    for (const RopeParameters& rope : found) {
      rotaries.push_back(make_rotary(rope, layer.shape.k_head_dim, pairs));
    }
  }
  return rotaries;
}

double config_number(const std::string& config_json, const std::string& name) {
  const JsonValue config = parse_or_nothing(config_json);
  const JsonValue* text = config.find("text_config");
  return number_or(config, name, text == nullptr ? 0 : number_or(*text, name, 0));
}

}  // namespace quoka::capture_detail
