// The only file of this room that knows toml++.

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "quoka/core/error.hpp"
#include "quoka/sweep/config.hpp"

namespace quoka {
namespace {

std::string place(std::string_view file, const toml::source_region& source) {
  return fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column);
}

/// 1e3 is the whole number 1000; 12.5 stays as it is.
std::string number_text(double value) {
  constexpr double exact_whole = 9007199254740992.0;  // 2^53
  const bool whole = std::trunc(value) == value && std::abs(value) < exact_whole;
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

SettingValue scalar(const toml::node& node, std::string_view key, std::string_view file) {
  const std::string origin = place(file, node.source());
  if (const auto* text = node.as_string()) {
    return {text->get(), origin, true};
  }
  if (const auto* number = node.as_integer()) {
    return {fmt::format("{}", number->get()), origin, false};
  }
  if (const auto* number = node.as_floating_point()) {
    return {number_text(number->get()), origin, false};
  }
  if (const auto* boolean = node.as_boolean()) {
    return {boolean->get() ? "true" : "false", origin, false};
  }
  throw ConfigError(
      fmt::format("{}: {} holds a value of the wrong type (a value is a text, a number, true or "
                  "false, or a list of these); write the file flat: key = value",
                  origin, key));
}

Setting setting(const toml::key& key, const toml::node& node, std::string_view file) {
  Setting result{std::string(key.str()), place(file, key.source()), {}};
  if (const auto* list = node.as_array()) {
    for (const toml::node& element : *list) {
      result.values.push_back(scalar(element, key.str(), file));
    }
  } else {
    result.values.push_back(scalar(node, key.str(), file));
  }
  return result;
}

}  // namespace

std::vector<Setting> parse_settings(std::string_view text, std::string_view name) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}: {}", place(name, error.source()), error.description()));
  }
  std::vector<Setting> settings;
  for (const auto& [key, node] : table) {
    settings.push_back(setting(key, node, name));
  }
  return settings;
}

std::vector<Setting> read_settings(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  require<ConfigError>(file.good() && !std::filesystem::is_directory(path),
                       "configuration file {} cannot be read; give the path of a TOML file",
                       path.string());
  return parse_settings(text.str(), path.string());
}

}  // namespace quoka
