set(room_sources correlation.cpp mean_query.cpp pca.cpp theorem.cpp unit_rows.cpp)
set(room_headers correlation.hpp mean_query.hpp pca.hpp theorem.hpp unit_rows.hpp)
