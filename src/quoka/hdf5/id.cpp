#include "quoka/hdf5/id.hpp"

#include <utility>

#include "quoka/hdf5/detail/api.hpp"

namespace quoka {

Hdf5Id& Hdf5Id::operator=(Hdf5Id&& other) noexcept {
  if (this != &other) {
    reset();
    close_ = other.close_;
    value_ = other.release();
  }
  return *this;
}

Hdf5Id::Value Hdf5Id::release() noexcept { return std::exchange(value_, -1); }

void Hdf5Id::reset() noexcept {
  const Value value = release();
  if (value >= 0 && close_ != nullptr) {
    hdf5_detail::prepare_thread();
    // A failure has no consequence here: whoever must know (a written file) closes it by name.
    static_cast<void>(close_(value));
  }
}

}  // namespace quoka
