set(room_sources blocked.cpp dense.cpp dense_row.cpp key_products.cpp lane_queries.cpp lane_softmax.cpp softmax.cpp sparse.cpp visibility.cpp)
set(room_headers blocked.hpp dense.hpp group_view.hpp key_products.hpp lane_queries.hpp lane_softmax.hpp softmax.hpp sparse.hpp visibility.hpp)
