set(room_sources best_keys.cpp key_scores.cpp prefill_chunk.cpp query_slots.cpp)
set(room_headers best_keys.hpp key_scores.hpp prefill_chunk.hpp query_slots.hpp)
