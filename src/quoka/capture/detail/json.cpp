#include "quoka/capture/detail/json.hpp"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "quoka/core/error.hpp"

namespace quoka::capture_detail {
namespace {

using Json = nlohmann::json;

// Builds the tree from the parser's events, so that limits and repeated keys are seen while
// reading. The names are those of nlohmann's interface.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(const std::string& where, const JsonLimits& limits)
      : where_(where), limits_(limits) {}

  JsonValue take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(number_integer_t value) override { return add({JsonValue::Negative{value}}); }
  bool number_unsigned(number_unsigned_t value) override { return add({std::uint64_t{value}}); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return add({value});
  }
  bool string(string_t& value) override { return add({std::move(value)}); }
  bool binary(binary_t& /*value*/) override { return false; }  // not in JSON texts

  bool start_object(std::size_t /*size*/) override { return open({JsonValue::Object{}}); }
  bool start_array(std::size_t /*size*/) override { return open({JsonValue::Array{}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    require<FormatError>(levels_.back().keys.insert(name).second,
                         "{}: the key '{}' appears twice (readers would disagree which one "
                         "counts); write it once",
                         where_, name);
    levels_.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    throw FormatError(
        fmt::format("{} is not valid JSON (byte {}: {})", where_, position, error.what()));
  }

 private:
  struct Level {
    JsonValue value;
    std::string key;  // of the member that comes next
    std::unordered_set<std::string> keys;
  };

  bool add(JsonValue value) {
    require<FormatError>(++n_values_ <= limits_.max_values, "{} has more than {} values", where_,
                         limits_.max_values);
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (auto* array = std::get_if<JsonValue::Array>(&level.value.data)) {
      array->push_back(std::move(value));
    } else {
      std::get<JsonValue::Object>(level.value.data)
          .emplace_back(std::move(level.key), std::move(value));
    }
    return true;
  }

  bool open(JsonValue value) {
    require<FormatError>(std::ssize(levels_) < limits_.max_depth,
                         "{} is nested more than {} levels deep", where_, limits_.max_depth);
    levels_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close() {
    JsonValue value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }

  const std::string& where_;
  JsonLimits limits_;
  Index n_values_ = 0;
  std::vector<Level> levels_;
  JsonValue root_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  if (const auto* object = get<Object>()) {
    for (const auto& [key, value] : *object) {
      if (key == name) {
        return &value;
      }
    }
  }
  return nullptr;
}

double JsonValue::number() const {
  if (const auto* value = get<double>()) {
    return *value;
  }
  if (const auto* value = get<std::uint64_t>()) {
    return static_cast<double>(*value);
  }
  const auto* negative = get<Negative>();
  return negative == nullptr ? 0 : static_cast<double>(negative->value);
}

JsonValue parse_json(const std::string& where, std::string_view text, const JsonLimits& limits) {
  // The parser takes a zero byte for the end of the text and would not look behind it.
  require<FormatError>(text.find('\0') == std::string_view::npos, "{} contains a zero byte", where);
  TreeBuilder builder(where, limits);
  const bool done = Json::sax_parse(text.begin(), text.end(), &builder);
  require<FormatError>(done, "{} is not valid JSON", where);
  return builder.take();
}

std::string json_quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_number(double value) { return Json(value).dump(); }

}  // namespace quoka::capture_detail
