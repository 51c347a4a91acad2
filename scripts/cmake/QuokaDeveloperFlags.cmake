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
            $<$<BOOL:${QUOKA_WERROR}>:-Werror>)
if(QUOKA_SANITIZE)
  target_compile_options(quoka_developer_flags INTERFACE -fsanitize=${QUOKA_SANITIZE}
                                                         -fno-omit-frame-pointer
                                                         -fno-sanitize-recover=all)
  target_link_options(quoka_developer_flags INTERFACE -fsanitize=${QUOKA_SANITIZE})
endif()
