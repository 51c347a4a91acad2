#pragma once

#include <string>
#include <string_view>

namespace quoka::apps {

/// The text with everything as \xNN that is no valid UTF-8 or would control a terminal (escape
/// sequences of a hostile file); line ends and tabs stay.
std::string printable(std::string_view text);

}  // namespace quoka::apps
