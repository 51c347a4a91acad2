set(room_sources dense.cpp softmax.cpp sparse.cpp visibility.cpp)
set(room_headers dense.hpp group_view.hpp softmax.hpp sparse.hpp visibility.hpp)
