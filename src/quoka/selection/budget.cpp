#include "quoka/selection/budget.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

constexpr Index micro = 1'000'000;
constexpr Index max_keys = Index{1} << 31;
constexpr std::size_t max_decimals = 6;

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Index to_index(std::string_view digits, std::string_view whole_text, std::string_view name) {
  Index value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  require<ConfigError>(
      error == std::errc{} && end == digits.data() + digits.size() && value <= max_keys,
      "{} \"{}\" is too large (at most {})", name, whole_text, max_keys);
  return value;
}

/// "12.5" to 12500000.
Index parse_micro_percent(std::string_view number, std::string_view whole_text,
                          std::string_view name) {
  const std::size_t dot = number.find('.');
  const std::string_view whole = number.substr(0, dot);
  const std::string decimals(dot == std::string_view::npos ? "0" : number.substr(dot + 1));
  require<ConfigError>(
      all_digits(whole) && all_digits(decimals) && decimals.size() <= max_decimals,
      "{} \"{}\" is not a percentage (a decimal number with at most {} decimals and a percent "
      "sign); for example \"25%\" or \"12.5%\"",
      name, whole_text, max_decimals);
  std::string padded = decimals;
  padded.append(max_decimals - decimals.size(), '0');
  return to_index(whole, whole_text, name) * micro + to_index(padded, whole_text, name);
}

}  // namespace

Budget Budget::from_keys(Index keys) {
  require<ConfigError>(keys >= 1 && keys <= max_keys,
                       "budget {} is not positive (each chunk keeps at least one key, at most {}); "
                       "use 1 or more",
                       keys, max_keys);
  Budget budget;
  budget.keys_ = keys;
  return budget;
}

Budget Budget::parse(std::string_view text, std::string_view name) {
  if (text.ends_with('%')) {
    Budget budget;
    budget.keys_ = 0;
    budget.micro_percent_ = parse_micro_percent(text.substr(0, text.size() - 1), text, name);
    require<ConfigError>(budget.micro_percent_ > 0 && budget.micro_percent_ <= 100 * micro,
                         "{} \"{}\" is outside the range above 0% to 100%", name, text);
    return budget;
  }
  const bool negative = text.starts_with('-') && all_digits(text.substr(1));
  require<ConfigError>(all_digits(text) || negative,
                       "{} \"{}\" is neither a whole number nor a percentage; for example 32 or "
                       "\"25%\"",
                       name, text);
  require<ConfigError>(!negative && to_index(text, text, name) > 0,
                       "{} {} is not positive; use 1 or more", name, text);
  return from_keys(to_index(text, text, name));
}

Index Budget::keys(Index n_candidates) const {
  if (!is_percentage()) {
    return keys_;
  }
  // ceil(n * percent / 100) in whole numbers, split so that no product overflows.
  constexpr Index denominator = 100 * micro;
  const Index whole = (n_candidates / denominator) * micro_percent_;
  const Index rest = (n_candidates % denominator) * micro_percent_;
  return std::max<Index>(1, whole + (rest + denominator - 1) / denominator);
}

double Budget::percent() const {
  return is_percentage() ? static_cast<double>(micro_percent_) / static_cast<double>(micro)
                         : std::numeric_limits<double>::quiet_NaN();
}

std::string Budget::text() const {
  if (!is_percentage()) {
    return fmt::format("{}", keys_);
  }
  std::string decimals = fmt::format("{:06}", micro_percent_ % micro);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return fmt::format("{}{}{}%", micro_percent_ / micro, decimals.empty() ? "" : ".", decimals);
}

}  // namespace quoka
