#include "quoka/sweep/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "quoka/core/error.hpp"
#include "quoka/selection/parameters.hpp"

namespace quoka {
namespace {

constexpr Index max_count = Index{1} << 31;
constexpr Index max_threads = 4096;

std::vector<ConfigKey> make_keys() {
  std::vector<ConfigKey> keys{
      {"capture", "capture files; a path is relative to the current directory"},
      {"layer", "layer indices, or all"},
      {"grid", "product, or one_at_a_time: each axis alone, the others at their first value"},
  };
  for (const Parameter& parameter : parameters()) {
    keys.push_back({parameter.name, parameter.help});
  }
  keys.push_back({"sink_size", "leading positions that *_no_sink metrics leave out, >= 0"});
  keys.push_back({"min_history", "chunks with fewer history keys do not count, >= 0"});
  keys.push_back({"by_chunk", "store the means per chunk too: true or false"});
  keys.push_back({"selections", "store the kept keys too: true or false"});
  keys.push_back({"threads", "threads; 0 = all; never changes a result"});
  keys.push_back({"out", "results file to write, relative to the current directory"});
  return keys;
}

/// Fewest single-character edits that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Calls set(), and puts the place of the value in front of what it throws.
template <typename Set>
void at_origin(const SettingValue& value, Set set) {
  try {
    set();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", value.origin, error.what()));
  }
}

const std::string& single(const Setting& setting) {
  require<ConfigError>(setting.values.size() == 1, "{}: {} takes one value, not {}", setting.origin,
                       setting.key, setting.values.size());
  return setting.values.front().text;
}

void require_names(const Setting& setting) {
  for (const SettingValue& value : setting.values) {
    require<ConfigError>(value.can_be_name, "{}: {} holds {}, which is not a text; write \"{}\"",
                         value.origin, setting.key, value.text, value.text);
  }
}

Index parse_count(const std::string& text, const std::string& key, Index highest) {
  Index value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ConfigError>(error == std::errc{} && end == text.data() + text.size(),
                       "{} \"{}\" is not a whole number", key, text);
  require<ConfigError>(value >= 0 && value <= highest,
                       "{} {} is out of range (at least 0, at most {})", key, value, highest);
  return value;
}

Index count_of(const Setting& setting, Index highest) {
  Index value = 0;
  const std::string& text = single(setting);
  at_origin(setting.values.front(), [&] { value = parse_count(text, setting.key, highest); });
  return value;
}

bool switch_of(const Setting& setting) {
  const std::string& text = single(setting);
  require<ConfigError>(text == "true" || text == "false", "{}: {} is \"{}\"; use true or false",
                       setting.values.front().origin, setting.key, text);
  return text == "true";
}

GridMode grid_of(const Setting& setting) {
  const std::string& text = single(setting);
  require<ConfigError>(text == "product" || text == "one_at_a_time",
                       "{}: grid \"{}\" is not known; use one of: product, one_at_a_time",
                       setting.values.front().origin, text);
  return text == "product" ? GridMode::product : GridMode::one_at_a_time;
}

std::vector<Index> layers_of(const Setting& setting) {
  std::vector<Index> layers;
  for (const SettingValue& value : setting.values) {
    if (value.text == "all") {
      require<ConfigError>(setting.values.size() == 1,
                           "{}: layer lists \"all\" beside other layers; use one of the two",
                           value.origin);
      return {};
    }
    at_origin(value, [&] { layers.push_back(parse_count(value.text, setting.key, max_count)); });
  }
  std::ranges::sort(layers);
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

std::vector<std::string> texts_of(const Setting& setting) {
  require_names(setting);
  std::vector<std::string> texts;
  for (const SettingValue& value : setting.values) {
    require<ConfigError>(!value.text.empty(), "{}: {} is empty; give a path", value.origin,
                         setting.key);
    texts.push_back(value.text);
  }
  return texts;
}

/// Values in the spelling in which configurations are printed, so that 025 and 25 are one.
std::vector<std::string> axis_values(const Setting& setting, const Parameter& parameter) {
  if (!parameter.is_number && parameter.name != "budget") {
    require_names(setting);
  }
  std::vector<std::string> values;
  for (const SettingValue& value : setting.values) {
    SelectorConfig config;
    at_origin(value, [&] { parameter.read(value.text, config); });
    values.push_back(parameter.print(config));
  }
  return values;
}

void apply_parameter(const Setting& setting, SweepConfig& config) {
  const Parameter* parameter = find_parameter(setting.key);
  require<ConfigError>(parameter != nullptr, "{}: unknown key \"{}\"; the nearest known key is {}",
                       setting.origin, setting.key, nearest_key(setting.key));
  const auto axis = std::ranges::find(config.axes, setting.key, &Axis::name);
  axis->values = axis_values(setting, *parameter);
}

void apply(const Setting& setting, SweepConfig& config) {
  const std::string& key = setting.key;
  const auto keys = config_keys();
  const bool known = std::ranges::find(keys, key, &ConfigKey::name) != keys.end();
  require<ConfigError>(!known || !setting.values.empty(),
                       "{}: {} has no values (the grid would be empty); leave the key out for its "
                       "default",
                       setting.origin, key);
  if (key == "capture") {
    config.captures = texts_of(setting);
  } else if (key == "layer") {
    config.layers = layers_of(setting);
  } else if (key == "grid") {
    config.grid = grid_of(setting);
  } else if (key == "sink_size") {
    config.constants.sink_size = count_of(setting, max_count);
  } else if (key == "min_history") {
    config.constants.min_history = count_of(setting, max_count);
  } else if (key == "by_chunk") {
    config.constants.by_chunk = switch_of(setting);
  } else if (key == "selections") {
    config.constants.selections = switch_of(setting);
  } else if (key == "threads") {
    config.threads = count_of(setting, max_threads);
  } else if (key == "out") {
    config.out = texts_of(setting).front();
    single(setting);
  } else {
    apply_parameter(setting, config);
  }
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\u{:04x}", code);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool all_digits(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// key = [a, "b"]: numbers bare, everything else quoted.
std::string list_line(std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> items;
  for (const std::string& value : values) {
    items.push_back(all_digits(value) ? value : quoted(value));
  }
  return fmt::format("{} = [{}]\n", key, fmt::join(items, ", "));
}

}  // namespace

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

std::string_view nearest_key(std::string_view unknown) {
  return std::ranges::min_element(
             config_keys(), {},
             [unknown](const ConfigKey& key) { return edit_distance(unknown, key.name); })
      ->name;
}

SweepConfig make_sweep_config(std::span<const Setting> settings) {
  SweepConfig config;
  const SelectorConfig defaults;
  for (const Parameter& parameter : parameters()) {
    config.axes.push_back({std::string(parameter.name), {parameter.print(defaults)}});
  }
  for (const Setting& setting : settings) {
    apply(setting, config);
  }
  require<ConfigError>(!config.captures.empty(),
                       "no capture is given (there is nothing to replay); use capture = [\"FILE\"] "
                       "in the configuration or --capture FILE");
  require<ConfigError>(!config.out.empty(),
                       "no output is given; use out = \"FILE\" in the configuration or --out FILE");
  return config;
}

std::string to_toml(const SweepConfig& config) {
  std::vector<std::string> captures;
  std::ranges::transform(config.captures, std::back_inserter(captures), quoted);
  std::vector<std::string> layers;
  for (const Index layer : config.layers) {
    layers.push_back(fmt::format("{}", layer));
  }
  std::string text = fmt::format("capture = [{}]\n", fmt::join(captures, ", "));
  text += list_line("layer", layers.empty() ? std::vector<std::string>{"all"} : layers);
  text += fmt::format("grid = \"{}\"\n",
                      config.grid == GridMode::product ? "product" : "one_at_a_time");
  for (const Axis& axis : config.axes) {
    text += list_line(axis.name, axis.values);
  }
  text += fmt::format("sink_size = {}\nmin_history = {}\nby_chunk = {}\nselections = {}\n",
                      config.constants.sink_size, config.constants.min_history,
                      config.constants.by_chunk, config.constants.selections);
  return text + fmt::format("out = {}\n", quoted(config.out));
}

}  // namespace quoka
