#include "common/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace quoka::apps {
namespace {

/// Length of the UTF-8 character at the start of the text, 0 if there is none. Overlong forms,
/// surrogates and control characters of two bytes (U+0080 to U+009F) count as none.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return first == '\n' || first == '\t' || (first >= 0x20 && first != 0x7f) ? 1 : 0;
  }
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const bool bad = (first == 0xc2 && byte(1) < 0xa0) || (first == 0xe0 && byte(1) < 0xa0) ||
                   (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
                   (first == 0xf4 && byte(1) > 0x8f);
  return bad ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace quoka::apps
