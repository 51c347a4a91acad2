#pragma once

/// What a sweep computes. Comes in: a flat TOML file and flags, as settings. Goes out: axes of
/// selector parameters, captures, constants, and the same as TOML text.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/results/results.hpp"

namespace quoka {

/// product: every combination. one_at_a_time: the first value of each axis is the base, every other
/// value is varied alone.
enum class GridMode { product, one_at_a_time };

/// The values of one selector parameter, as text, in the order given.
struct Axis {
  std::string name;  ///< of parameters(), in its order
  std::vector<std::string> values;

  bool operator==(const Axis&) const = default;
};

/// A whole sweep as the user asked for it.
struct SweepConfig {
  std::vector<std::string> captures;  ///< paths, relative to the current directory
  std::vector<Index> layers;          ///< empty: all layers of each capture
  GridMode grid = GridMode::product;
  std::vector<Axis> axes;  ///< one per parameter
  SweepConstants constants;
  Index threads = 0;  ///< 0: all that the process may use; never changes a result
  std::string out;    ///< results file, relative to the current directory

  bool operator==(const SweepConfig&) const = default;
};

/// One value as it was written.
struct SettingValue {
  std::string text;
  std::string origin;  ///< "file:line:column" or "--flag", for messages
  /// False for a bare number or boolean of a file, which cannot be a name or a path.
  bool can_be_name = true;
};

/// One key with its values.
struct Setting {
  std::string key;
  std::string origin;
  std::vector<SettingValue> values;
};

/// Every key of a configuration: name and one line of help, in the order of the printed file.
struct ConfigKey {
  std::string_view name;
  std::string_view help;
};
std::span<const ConfigKey> config_keys();

/// The key that is fewest single-character edits away from the word.
std::string_view nearest_key(std::string_view word);

/// Reads a flat TOML file: keys with a value or a list of values. Neither keys nor values are
/// judged. Throws: ConfigError with file:line:column for a syntax error, a repeated key, a table, a
/// nested
///         list, a date; ConfigError if the file cannot be read.
std::vector<Setting> read_settings(const std::filesystem::path& path);

/// The same for a text; name stands for the file in messages.
std::vector<Setting> parse_settings(std::string_view text, std::string_view name);

/// Defaults, overridden by the settings in order (so flags come after the file). Every value is
/// checked by itself; a list is an axis and replaces what was set before.
///
/// Throws: ConfigError naming origin, key and value: unknown key (with the nearest known one),
/// wrong
///         type, empty list, value out of range, several values for a key that takes one, no
///         capture, no out.
SweepConfig make_sweep_config(std::span<const Setting> settings);

/// The configuration as TOML, all keys but threads written out. Reading it gives the same
/// configuration.
std::string to_toml(const SweepConfig& config);

}  // namespace quoka
