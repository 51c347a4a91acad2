#pragma once

// Private to the capture room: rotary position embedding, to recognise tensors that were taken
// before it. A replay never rotates anything.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "quoka/capture/schema.hpp"

namespace quoka::capture_detail {

// Which channels form a pair: channel c with c + n/2 (Llama and most others), or 2c with 2c + 1.
enum class RotaryPairs { halves, neighbours };

struct Rotary {
  std::vector<double> frequencies;  // per pair, radians per position
  RotaryPairs pairs = RotaryPairs::halves;
  std::string name;  // for messages
};

// Rotates each row of a [n, head_dim] block by its position; channels behind the pairs stay.
void rotate(const Rotary& rotary, std::span<const std::int32_t> positions, Matrix& rows);

// What the layer's model may have used: every rope_theta of rope_json and of the configuration
// (linear and llama3 scaling applied), or the usual ones if neither names any.
std::vector<Rotary> rotary_candidates(const CaptureLayer& layer, const std::string& config_json);

// A positive number of that name at the top of the model's configuration (or of its text_config);
// 0 if there is none.
double config_number(const std::string& config_json, const std::string& name);

}  // namespace quoka::capture_detail
