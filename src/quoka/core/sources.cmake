set(room_sources half.cpp parallel.cpp sha256.cpp)
set(room_headers
    attention_rules.hpp
    attention_shape.hpp
    build_info.hpp
    error.hpp
    half.hpp
    matrix.hpp
    parallel.hpp
    random.hpp
    sha256.hpp)
