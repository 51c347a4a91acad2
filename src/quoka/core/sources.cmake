set(room_sources atomic_file.cpp half.cpp lane_product.cpp parallel.cpp sha256.cpp)
set(room_headers
    atomic_file.hpp
    attention_rules.hpp
    attention_shape.hpp
    build_info.hpp
    error.hpp
    float64_sums.hpp
    half.hpp
    lane_product.hpp
    lanes.hpp
    matrix.hpp
    parallel.hpp
    random.hpp
    sha256.hpp)
