set(room_sources mean_query.cpp unit_rows.cpp)
set(room_headers mean_query.hpp unit_rows.hpp)
