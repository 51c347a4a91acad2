set(room_sources best_keys.cpp prefill_chunk.cpp query_slots.cpp unit_keys.cpp)
set(room_headers best_keys.hpp prefill_chunk.hpp query_slots.hpp unit_keys.hpp)
