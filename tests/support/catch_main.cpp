// Only for a Catch2 2 that was installed without its main library.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
