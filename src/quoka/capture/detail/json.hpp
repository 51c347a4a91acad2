#pragma once

// Private to the capture room: JSON texts of strangers, read strictly. The only header behind which
// nlohmann-json is used.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka::capture_detail {

// One JSON value. Integers keep their sign class: "-0" and "-1" are Negative, "1.0" is double.
struct JsonValue {
  struct Negative {
    std::int64_t value = 0;
  };
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;

  std::variant<std::monostate, bool, std::uint64_t, Negative, double, std::string, Array, Object>
      data;

  template <typename T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&data);
  }
  // The member of that name, or null; null too if this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;
  // Any number as double; 0 if this is no number.
  [[nodiscard]] double number() const;
};

struct JsonLimits {
  Index max_depth = 32;
  Index max_values = 2'000'000;  // a value takes about 50 bytes here
};

// Parses one JSON text: UTF-8, no key twice in an object (however it is escaped), nothing after it
// but white space. Throws: FormatError "<where> is not valid JSON (...)".
JsonValue parse_json(const std::string& where, std::string_view text,
                     const JsonLimits& limits = {});

// The text in quotes, escaped; bytes that are not UTF-8 become the replacement character.
std::string json_quoted(std::string_view text);

// Shortest text that reads back to the same double; null for NaN and infinity.
std::string json_number(double value);

}  // namespace quoka::capture_detail
