set(room_sources detail/layer_reader.cpp detail/root_reader.cpp reader.cpp schema.cpp synthetic.cpp
                 writer.cpp)
set(room_headers reader.hpp schema.hpp synthetic.hpp writer.hpp)
