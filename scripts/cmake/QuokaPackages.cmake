# Debian's own packages; scripts/setup.sh installs them. The same list is in quokaConfig.cmake.in.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt 9 REQUIRED CONFIG)
find_package(spdlog 1.10 REQUIRED CONFIG)
find_package(tomlplusplus REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
find_package(HDF5 1.10 REQUIRED MODULE COMPONENTS C HL)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto) # SHA-256 of captures and configurations
if(QUOKA_BUILD_APPS)
  find_package(CLI11 2.1 REQUIRED CONFIG)
endif()
