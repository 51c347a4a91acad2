set(room_sources columns.cpp)
set(room_headers columns.hpp needles.hpp)
