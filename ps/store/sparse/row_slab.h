// A slab: some rows in one allocation, with a mark of those that a snapshot looks at.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_SLAB_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_SLAB_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ps/store/elements.h"
#include "ps/store/frozen_piece.h"
#include "ps/store/memory/block_pool.h"
#include "ps/store/memory/shared_bytes.h"

namespace leeway::ps {

struct SlabShape {
  std::uint32_t rows = 0;
  std::uint64_t elements = 0;
  std::uint32_t state_slots = 0;
  bool own_widths = false;  // ragged
};

// Rows are appended and never move within a slab; one that has moved to another slab is left
// behind with no steps. Rows that a snapshot looks at are not written: new ones lie behind what it
// sees, and those that leave meanwhile are marked.
template <class Stored>
class RowSlab {
 public:
  using Compute = ComputeOf<Stored>;

  RowSlab(const SlabShape& shape, BlockPool* pool)
      : shape_(shape),
        memory_(BlockPool::New(pool, BytesOf(shape))),
        step_memory_(shape.rows * sizeof(std::uint64_t)) {
    std::byte* next = memory_.data();
    values_ = Take<Stored>(next, shape.elements);
    state_ = Take<Compute>(next, shape.elements * shape.state_slots);
    keys_ = Take<std::uint64_t>(next, shape.rows);
    if (shape.own_widths) {
      widths_ = Take<std::uint32_t>(next, shape.rows);
      extents_ = Take<Extent>(next, shape.rows);
    }
    steps_ = reinterpret_cast<std::uint64_t*>(step_memory_.data());
  }

  std::uint64_t generation = 0;  // of the newest write to a row in it
  bool evacuating = false;       // its rows are being moved elsewhere

  std::uint32_t size() const { return used_; }
  std::uint64_t key(std::uint32_t row) const { return keys_[row]; }
  const std::uint64_t* key_memory(std::uint32_t row) const { return keys_ + row; }
  std::uint32_t RowAt(const std::uint64_t* key_memory) const {
    return static_cast<std::uint32_t>(key_memory - keys_);
  }
  std::uint64_t steps(std::uint32_t row) const { return steps_[row]; }
  std::uint64_t width(std::uint32_t row) const {
    return extents_ == nullptr ? shape_.elements / shape_.rows : extents_[row].width;
  }
  // `width` of sparse tables, which the caller knows.
  std::uint64_t OffsetOf(std::uint32_t row, std::uint64_t width) const {
    return extents_ == nullptr ? row * width : extents_[row].offset;
  }
  std::uint64_t OffsetAt(const Stored* values) const {
    return static_cast<std::uint64_t>(values - values_);
  }
  Stored* values(std::uint64_t offset) const { return values_ + offset; }
  Compute* state(std::uint64_t offset) const { return state_ + offset * shape_.state_slots; }
  std::uint64_t* step_counter(std::uint32_t row) const { return steps_ + row; }

  bool HasRoomFor(std::uint64_t width) const {
    return used_ < shape_.rows && used_elements_ + width <= shape_.elements;
  }

  // A new row, whose values, state and steps the caller writes.
  std::uint32_t Append(std::uint64_t key, std::uint64_t width) {
    keys_[used_] = key;
    if (shape_.own_widths) {
      widths_[used_] = static_cast<std::uint32_t>(width);
      extents_[used_] = {static_cast<std::uint32_t>(used_elements_), widths_[used_]};
    }
    used_elements_ += width;
    return used_++;
  }

  // Whether the row may be written in place.
  bool Writable(std::uint32_t row) { return row >= frozen_ || Thaw(); }

  // The row has moved elsewhere. Where a snapshot still shows its steps that is only marked:
  // copying all steps of every slab that one row leaves would take as long as many updates, and
  // most often the snapshot has gone before the next one is taken.
  void LeaveBehind(std::uint32_t row) {
    left_elements_ += width(row);
    ++left_;
    if (Writable(row) || step_memory_.Writable()) {
      steps_[row] = 0;
      return;
    }
    if (watermarks_.empty()) watermarks_.resize((shape_.rows + kBits - 1) / kBits);
    watermarks_[row / kBits] |= std::uint64_t{1} << row % kBits;
  }
  // Whether the row has not moved elsewhere.
  bool IsThere(std::uint32_t row) const {
    return steps_[row] != 0 &&
           (watermarks_.empty() || (watermarks_[row / kBits] >> row % kBits & 1) == 0);
  }

  std::uint64_t memory_bytes() const {
    return memory_.size() + step_memory_.size() + watermarks_.capacity() * sizeof(std::uint64_t);
  }
  // As memory_bytes, but the same from the slab's beginning to its end.
  std::uint64_t own_bytes() const { return memory_.size() + step_memory_.size(); }
  bool HasRows() const { return left_ < used_; }
  // Whether gaps take up more than the rows that are still there.
  bool MostlyLeft() const {
    return 2 * BytesOf(left_, left_elements_) > BytesOf(used_, used_elements_);
  }

  // The rows that lie in it now. They are not written while the piece exists.
  FrozenPiece Freeze() {
    const auto view = [this](const auto* begin, std::uint64_t size) {
      const auto* first = reinterpret_cast<const std::byte*>(begin);
      return memory_.View(static_cast<std::size_t>(first - memory_.data()), size * sizeof(*begin));
    };
    ClearMarked();
    frozen_ = used_;
    FrozenPiece piece;
    piece.kind = shape_.own_widths ? TableKind::kRagged : TableKind::kSparse;
    piece.dtype = DTypeOf<Stored>;
    piece.elements = used_elements_;
    piece.state_slots = shape_.state_slots;
    piece.keys = view(keys_, used_);
    if (shape_.own_widths) piece.widths = view(widths_, used_);
    piece.values = view(values_, used_elements_);
    piece.state = view(state_, used_elements_ * shape_.state_slots);
    piece.steps = step_memory_.View(0, used_ * sizeof(std::uint64_t));
    return piece;
  }

  static std::uint64_t ElementBytes(std::uint32_t state_slots) {
    return sizeof(Stored) + state_slots * sizeof(Compute);
  }
  static constexpr std::uint64_t kRowBytes = 2 * sizeof(std::uint64_t);  // key and steps

 private:
  static constexpr std::uint64_t kAlignment = 64;
  static constexpr std::uint32_t kBits = 64;  // of a word of watermarks

  // The place of a row with a width of its own; slabs are far smaller than 2^32 elements.
  struct Extent {
    std::uint32_t offset;
    std::uint32_t width;
  };

  template <class T>
  static std::uint64_t Padded(std::uint64_t size) {
    return (size * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

  static std::uint64_t BytesOf(const SlabShape& shape) {
    const std::uint64_t rows = Padded<Stored>(shape.elements) +
                               Padded<Compute>(shape.elements * shape.state_slots) +
                               Padded<std::uint64_t>(shape.rows);
    if (!shape.own_widths) return rows;
    return rows + Padded<std::uint32_t>(shape.rows) + Padded<Extent>(shape.rows);
  }

  template <class T>
  static T* Take(std::byte*& next, std::uint64_t size) {
    return reinterpret_cast<T*>(std::exchange(next, next + Padded<T>(size)));
  }

  std::uint64_t BytesOf(std::uint64_t rows, std::uint64_t elements) const {
    return rows * kRowBytes + elements * ElementBytes(shape_.state_slots);
  }

  bool Thaw() {
    if (!memory_.Writable() || !step_memory_.Writable()) return false;
    frozen_ = 0;
    ClearMarked();
    return true;
  }

  // The steps of rows that are marked become 0; in a copy, if a snapshot has them too.
  void ClearMarked() {
    if (watermarks_.empty()) return;
    if (!step_memory_.Writable()) {
      SharedBytes copy(step_memory_.size());
      std::copy_n(steps_, used_, reinterpret_cast<std::uint64_t*>(copy.data()));
      step_memory_ = std::move(copy);
      steps_ = reinterpret_cast<std::uint64_t*>(step_memory_.data());
    }
    for (std::uint32_t row = 0; row < used_; ++row) {
      if ((watermarks_[row / kBits] >> row % kBits & 1) != 0) steps_[row] = 0;
    }
    watermarks_.clear();
  }

  // The members that an update needs come first.
  std::uint32_t frozen_ = 0;  // rows before it may be seen by a snapshot
  std::uint32_t used_ = 0;
  Stored* values_ = nullptr;
  Compute* state_ = nullptr;
  std::uint64_t* steps_ = nullptr;
  Extent* extents_ = nullptr;        // ragged
  std::uint32_t* widths_ = nullptr;  // ragged: once more, as snapshots show them
  std::uint64_t* keys_ = nullptr;
  SlabShape shape_;
  std::vector<std::uint64_t>
      watermarks_;  // bits: rows that were left behind, whose steps say otherwise
  SharedBytes memory_;
  SharedBytes step_memory_;
  std::uint64_t used_elements_ = 0;
  std::uint64_t left_elements_ = 0;
  std::uint32_t left_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_SLAB_H_
