set(room_sources budget.cpp parameters.cpp)
set(room_headers budget.hpp config.hpp parameters.hpp)
