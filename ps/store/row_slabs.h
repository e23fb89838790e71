// Rows of one width, in slabs: rows never move, and a row's values and state lie in few pieces.
#ifndef LEEWAY_PS_STORE_ROW_SLABS_H_
#define LEEWAY_PS_STORE_ROW_SLABS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "leeway/updater.h"
#include "ps/store/elements.h"

namespace leeway::ps {

template <class Stored>
class RowSlabs {
 public:
  using Compute = ComputeOf<Stored>;

  RowSlabs(std::uint64_t width, const Updater* updater)
      : width_(width),
        rows_a_slab_(std::max<std::uint64_t>(1, kSlabBytes / (width * sizeof(Stored)))) {
    for (int slot = 0; slot < updater->state_slots(); ++slot) {
      initial_state_.push_back(static_cast<Compute>(updater->initial_state(slot)));
    }
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const {
    return slabs_.size() * rows_a_slab_ * width_ *
           (sizeof(Stored) + initial_state_.size() * sizeof(Compute));
  }

  // The index of a new row: no steps, initial state, values to be written by the caller.
  std::uint64_t Append() {
    if (size_ == slabs_.size() * rows_a_slab_) AppendSlab();
    const std::uint64_t row = size_++;
    const auto pieces = state(row);
    for (std::size_t slot = 0; slot < pieces.size(); ++slot) {
      std::fill_n(pieces[slot], width_, initial_state_[slot]);
    }
    return row;
  }

  Stored* values(std::uint64_t row) {
    return slabs_[row / rows_a_slab_].values.get() + row % rows_a_slab_ * width_;
  }
  absl::InlinedVector<Compute*, 4> state(std::uint64_t row) {
    Compute* const slab = slabs_[row / rows_a_slab_].state.get();
    absl::InlinedVector<Compute*, 4> pieces;
    for (std::size_t slot = 0; slot < initial_state_.size(); ++slot) {
      pieces.push_back(slab + (slot * rows_a_slab_ + row % rows_a_slab_) * width_);
    }
    return pieces;
  }
  std::uint64_t& steps(std::uint64_t row) {
    return slabs_[row / rows_a_slab_].steps[row % rows_a_slab_];
  }

 private:
  static constexpr std::uint64_t kSlabBytes = 64 << 10;  // of values

  struct Slab {
    std::unique_ptr<Stored[]> values;
    std::unique_ptr<Compute[]> state;  // slot after slot
    std::vector<std::uint64_t> steps;
  };

  void AppendSlab() {
    const std::uint64_t elements = rows_a_slab_ * width_;
    slabs_.push_back({std::unique_ptr<Stored[]>(new Stored[elements]),
                      std::unique_ptr<Compute[]>(new Compute[elements * initial_state_.size()]),
                      std::vector<std::uint64_t>(rows_a_slab_)});
  }

  const std::uint64_t width_;
  const std::uint64_t rows_a_slab_;
  std::vector<Compute> initial_state_;  // by slot
  std::vector<Slab> slabs_;
  std::uint64_t size_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_ROW_SLABS_H_
