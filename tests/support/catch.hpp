#pragma once

// The only file that includes Catch2, so that both major versions work (version 2 has one header).
#ifdef QUOKA_CATCH2_V3
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace quoka::test {

/// Matcher "the text contains this": it has another name in each version.
inline auto contains(const std::string& text) {
#ifdef QUOKA_CATCH2_V3
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

}  // namespace quoka::test
