# Warnings and sanitizers: linked privately inside this project, never exported.
add_library(quoka_developer_flags INTERFACE)
target_compile_options(
  quoka_developer_flags
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wdouble-promotion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wcast-align
            -Wformat=2
            # g++ 12 reports its own AVX-512 intrinsics (GCC bug 105593)
            $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
            $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>
            # and std::string at -O3 (GCC bug 105651)
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            $<$<BOOL:${QUOKA_WERROR}>:-Werror>)
if(QUOKA_SANITIZE)
  target_compile_options(quoka_developer_flags INTERFACE -fsanitize=${QUOKA_SANITIZE}
                                                         -fno-omit-frame-pointer
                                                         -fno-sanitize-recover=all)
  target_link_options(quoka_developer_flags INTERFACE -fsanitize=${QUOKA_SANITIZE})
endif()
