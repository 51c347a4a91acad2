set(room_sources compare.cpp layer_groups.cpp metric.cpp profile.cpp profile_json.cpp report.cpp)
set(room_headers compare.hpp layer_groups.hpp metric.hpp profile.hpp profile_json.hpp report.hpp)
