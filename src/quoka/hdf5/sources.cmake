set(room_sources)
set(room_headers dataset.hpp file.hpp group.hpp id.hpp object.hpp)
