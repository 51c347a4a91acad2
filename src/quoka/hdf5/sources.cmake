set(room_sources dataset.cpp detail/api.cpp detail/pre_check.cpp file.cpp group.cpp id.cpp object.cpp)
set(room_headers dataset.hpp file.hpp group.hpp id.hpp object.hpp)
