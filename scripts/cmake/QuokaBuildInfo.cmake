# Writes core/build_info.cpp: what each results file records about the program that made it.
# The commit is read at configure time; a commit made later shows after the next configure.
execute_process(
  COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --exclude=*
  OUTPUT_VARIABLE QUOKA_GIT_COMMIT
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT QUOKA_GIT_COMMIT)
  set(QUOKA_GIT_COMMIT unknown)
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
set(QUOKA_CXX_FLAGS "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}")
if(QUOKA_NATIVE)
  string(APPEND QUOKA_CXX_FLAGS " -march=native")
endif()
if(QUOKA_SANITIZE)
  string(APPEND QUOKA_CXX_FLAGS " -fsanitize=${QUOKA_SANITIZE}")
endif()
string(STRIP "${QUOKA_CXX_FLAGS}" QUOKA_CXX_FLAGS)
set(QUOKA_PACKAGES
    "Eigen ${Eigen3_VERSION}, HDF5 ${HDF5_VERSION}, fmt ${fmt_VERSION}, spdlog ${spdlog_VERSION}")
configure_file(${PROJECT_SOURCE_DIR}/src/quoka/core/build_info.cpp.in
               ${PROJECT_BINARY_DIR}/generated/build_info.cpp @ONLY)
target_sources(quoka PRIVATE ${PROJECT_BINARY_DIR}/generated/build_info.cpp)
