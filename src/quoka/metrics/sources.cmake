set(room_sources columns.cpp output_error.cpp row_statistics.cpp)
set(room_headers columns.hpp needles.hpp output_error.hpp row_statistics.hpp)
