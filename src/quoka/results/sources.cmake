set(room_sources axis_writer.cpp export.cpp provenance.cpp reader.cpp results.cpp table.cpp writer.cpp)
set(room_headers axis_writer.hpp export.hpp provenance.hpp reader.hpp results.hpp table.hpp writer.hpp)
