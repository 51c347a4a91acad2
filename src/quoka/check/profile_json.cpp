// The only file of this room that knows nlohmann-json.
#include "quoka/check/profile_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format_name = "quoka-profile";
constexpr std::array<std::pair<std::string_view, HeadStatistic>, 2> statistic_words{
    {{"mean", HeadStatistic::mean}, {"worst_head", HeadStatistic::worst_head}}};
constexpr std::array<std::pair<std::string_view, Better>, 3> better_words{
    {{"higher", Better::higher}, {"lower", Better::lower}, {"neither", Better::neither}}};

template <typename Words, typename Value>
std::string word_of(const Words& words, Value value) {
  const auto found = std::ranges::find(words, value, [](const auto& pair) { return pair.second; });
  return std::string(found->first);
}

/// Names of models need not be UTF-8, JSON must be.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string lines(const std::vector<std::string>& items, char open, char close) {
  return fmt::format("{}\n  {}\n {}", open, fmt::join(items, ",\n  "), close);
}

std::string row_json(const ProfileRow& row) {
  Json json{{"group", row.group},
            {"config", row.config},
            {"metric", row.metric},
            {"statistic", word_of(statistic_words, row.statistic)},
            {"better", word_of(better_words, row.better)}};
  if (std::isnan(row.expected)) {
    json["expected"] = nullptr;
    json["reason"] = "no head has a value";
  } else {
    json["expected"] = row.expected;
  }
  json["tolerance"] = row.tolerance;
  json["n_values"] = row.n_values;
  json["n_undefined"] = row.n_undefined;
  return dump(json);
}

/// Refuses a repeated key while the text is read: afterwards only one of the two would be there.
class RepeatedKeys {
 public:
  explicit RepeatedKeys(const std::string& where) : where_(where) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        levels_.push_back({{}, event == Json::parse_event_t::array_start ? "[0]" : "", 0});
        break;
      case Json::parse_event_t::key:
        add_key(parsed.get<std::string>());
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        [[fallthrough]];
      case Json::parse_event_t::value:
        if (!levels_.empty() && levels_.back().step.starts_with('[')) {
          levels_.back().step = fmt::format("[{}]", ++levels_.back().index);
        }
        break;
    }
    return true;
  }

 private:
  struct Level {
    std::set<std::string> keys;
    std::string step;  // how the value that comes next is reached from here
    Index index = 0;   // in an array
  };

  void add_key(const std::string& key) {
    Level& level = levels_.back();
    level.step = "." + key;
    if (!level.keys.insert(key).second) {
      throw FormatError(
          fmt::format("{}, {}: the key appears twice (readers would disagree which one counts); "
                      "write it once",
                      where_, path()));
    }
  }

  [[nodiscard]] std::string path() const {
    std::string steps;
    for (const Level& level : levels_) {
      steps += level.step;
    }
    return steps.substr(steps.starts_with('.') ? 1 : 0);
  }

  const std::string& where_;
  std::vector<Level> levels_;
};

/// A value and where it stands: "p.json, rows[3].expected".
class Place {
 public:
  Place(const Json& json, std::string name) : json_(&json), name_(std::move(name)) {}

  template <typename... Args>
  void require_that(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    require<FormatError>(condition, "{}: {}", name_,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  /// An object with these keys and no others; optional ones may be missing.
  void has_keys(std::initializer_list<std::string_view> required,
                std::initializer_list<std::string_view> optional = {}) const {
    require_that(json_->is_object(), "{} where an object is expected", json_->type_name());
    for (const auto& item : json_->items()) {
      const bool known = std::ranges::find(required, item.key()) != required.end() ||
                         std::ranges::find(optional, item.key()) != optional.end();
      require_that(known, "key \"{}\" is not known; the keys are {}", item.key(),
                   fmt::join(required, ", "));
    }
    for (const std::string_view key : required) {
      require_that(json_->contains(key), "key \"{}\" is missing", key);
    }
  }

  [[nodiscard]] bool contains(std::string_view key) const { return json_->contains(key); }
  [[nodiscard]] bool is_null() const { return json_->is_null(); }
  [[nodiscard]] Place at(std::string_view key) const {
    const bool is_root = name_.find(", ") == std::string::npos;
    return {json_->at(key), fmt::format("{}{}{}", name_, is_root ? ", " : ".", key)};
  }

  /// The elements of an array.
  [[nodiscard]] std::vector<Place> items() const {
    require_that(json_->is_array(), "{} where an array is expected", json_->type_name());
    require_that(!json_->empty(), "the array is empty (a check of nothing would pass)");
    std::vector<Place> found;
    for (std::size_t i = 0; i < json_->size(); ++i) {
      found.push_back({json_->at(i), fmt::format("{}[{}]", name_, i)});
    }
    return found;
  }

  /// Keys and values of an object.
  [[nodiscard]] std::vector<std::pair<std::string, Place>> members() const {
    require_that(json_->is_object(), "{} where an object is expected", json_->type_name());
    std::vector<std::pair<std::string, Place>> found;
    for (const auto& item : json_->items()) {
      found.emplace_back(item.key(), at(item.key()));
    }
    return found;
  }

  [[nodiscard]] std::string text() const {
    require_that(json_->is_string(), "{} where a text is expected", json_->type_name());
    return json_->get<std::string>();
  }
  [[nodiscard]] double number() const {
    require_that(json_->is_number(), "{} where a number is expected", json_->type_name());
    return json_->get<double>();
  }
  /// A whole number of 0 or more.
  [[nodiscard]] Index count() const {
    require_that(json_->is_number_integer() && json_->get<Index>() >= 0,
                 "{} where a whole number of 0 or more is expected", dump(*json_));
    return json_->get<Index>();
  }

  template <typename Words>
  [[nodiscard]] auto word(const Words& words) const {
    const std::string given = text();
    const auto found = std::ranges::find(words, given, [](const auto& pair) { return pair.first; });
    require_that(found != words.end(), "\"{}\" is not one of {}, {}", given, words.front().first,
                 words.back().first);
    return found->second;
  }

 private:
  const Json* json_;
  std::string name_;
};

ProfileCapture read_capture(const Place& from) {
  from.has_keys({"model_id", "sha256", "layers"});
  ProfileCapture capture{from.at("model_id").text(), from.at("sha256").text(), {}};
  for (const Place& layer : from.at("layers").items()) {
    capture.layers.push_back(layer.count());
  }
  return capture;
}

ProfileRow read_row(const Place& from) {
  from.has_keys({"group", "config", "metric", "statistic", "better", "expected", "tolerance",
                 "n_values", "n_undefined"},
                {"reason"});
  ProfileRow row;
  row.group = from.at("group").text();
  row.config = from.at("config").text();
  row.metric = from.at("metric").text();
  from.at("metric").require_that(find_cell_column(row.metric) >= 0,
                                 "\"{}\" is no variable of a results file", row.metric);
  row.statistic = from.at("statistic").word(statistic_words);
  row.better = from.at("better").word(better_words);
  row.tolerance = from.at("tolerance").number();
  from.at("tolerance").require_that(row.tolerance >= 0, "{} is negative", row.tolerance);
  row.n_values = from.at("n_values").count();
  row.n_undefined = from.at("n_undefined").count();
  const Place expected = from.at("expected");
  row.expected = expected.is_null() ? std::nan("") : expected.number();
  expected.require_that(expected.is_null() == from.contains("reason"),
                        "null and a \"reason\" go together, a number has none");
  expected.require_that(expected.is_null() == (row.n_values == 0),
                        "null and n_values 0 go together, but n_values is {}", row.n_values);
  return row;
}

void read_rows(const Place& from, Profile& profile) {
  std::set<std::tuple<std::string, std::string, std::string, HeadStatistic>> seen;
  for (const Place& place : from.items()) {
    const ProfileRow row = read_row(place);
    place.at("config").require_that(
        std::ranges::find(profile.configs, row.config, &ProfileConfig::id) != profile.configs.end(),
        "\"{}\" is not one of the configurations above", row.config);
    place.require_that(seen.insert({row.group, row.config, row.metric, row.statistic}).second,
                       "group {}, configuration {}, metric {} has a row already", row.group,
                       row.config, row.metric);
    profile.rows.push_back(row);
  }
}

Json parse_json(const std::string& where, std::string_view text) {
  // The parser takes a zero byte for the end of the text and would not look behind it.
  require<FormatError>(text.find('\0') == std::string_view::npos, "{} contains a zero byte", where);
  try {
    return Json::parse(text, RepeatedKeys(where));
  } catch (const nlohmann::json::exception& error) {
    throw FormatError(fmt::format("{} is not valid JSON ({})", where, error.what()));
  }
}

}  // namespace

std::string profile_json(const Profile& profile) {
  std::vector<std::string> captures;
  for (const ProfileCapture& capture : profile.captures) {
    captures.push_back(dump(Json{
        {"model_id", capture.model_id}, {"sha256", capture.sha256}, {"layers", capture.layers}}));
  }
  std::vector<std::string> configs;
  for (const ProfileConfig& config : profile.configs) {
    configs.push_back(fmt::format("{}: {}", dump(Json(config.id)), dump(Json(config.text))));
  }
  std::vector<std::string> rows;
  std::ranges::transform(profile.rows, std::back_inserter(rows), row_json);
  const std::vector<std::string> members{
      fmt::format("\"format\": \"{}\"", format_name),
      fmt::format("\"format_version\": {}", profile_format_version),
      fmt::format("\"metric_version\": {}", metric_version),
      fmt::format("\"program_version\": {}", dump(Json(profile.program_version))),
      fmt::format("\"sink_size\": {}", profile.sink_size),
      fmt::format("\"min_history\": {}", profile.min_history),
      fmt::format("\"layer_group\": \"{}\"", name_of(profile.grouping)),
      fmt::format("\"captures\": {}", lines(captures, '[', ']')),
      fmt::format("\"configurations\": {}", lines(configs, '{', '}')),
      fmt::format("\"rows\": {}", lines(rows, '[', ']'))};
  return fmt::format("{{\n {}\n}}\n", fmt::join(members, ",\n "));
}

Profile parse_profile(const std::string& where, std::string_view text) {
  const Json json = parse_json(where, text);
  const Place root(json, where);
  const bool known = json.is_object() && json.contains("format") && json["format"] == format_name &&
                     json.contains("format_version");
  root.require_that(known,
                    "format is not \"{}\" (this is no profile); give a file that quoka-check "
                    "profile wrote",
                    format_name);
  const Index format = root.at("format_version").count();
  root.at("format_version")
      .require_that(format == profile_format_version,
                    "{} is not {} (another layout); make the profile again", format,
                    profile_format_version);
  root.has_keys({"format", "format_version", "metric_version", "program_version", "sink_size",
                 "min_history", "layer_group", "captures", "configurations", "rows"});
  const Index metrics = root.at("metric_version").count();
  root.at("metric_version")
      .require_that(metrics == metric_version,
                    "{} is not {} (the metrics are defined differently); make the profile again",
                    metrics, metric_version);
  Profile profile;
  profile.program_version = root.at("program_version").text();
  profile.sink_size = root.at("sink_size").count();
  profile.min_history = root.at("min_history").count();
  try {
    profile.grouping = parse_layer_grouping(root.at("layer_group").text());
  } catch (const ConfigError& error) {
    root.at("layer_group").require_that(false, "{}", error.what());
  }
  for (const Place& capture : root.at("captures").items()) {
    profile.captures.push_back(read_capture(capture));
  }
  for (const auto& [id, place] : root.at("configurations").members()) {
    profile.configs.push_back({id, place.text()});
  }
  read_rows(root.at("rows"), profile);
  return profile;
}

Profile read_profile(const std::filesystem::path& path) {
  const std::string name = path.string();
  require<FormatError>(std::filesystem::is_regular_file(path),
                       "{} does not exist or is no regular file; check the path", name);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  require<IoError>(file.good() || file.eof(), "{} cannot be read; check its permissions", name);
  return parse_profile(name, text);
}

}  // namespace quoka
