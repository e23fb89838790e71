// The rows of a sparse or ragged shard by key, in slabs that can be frozen.
//
// A row that a snapshot looks at is not written: it first moves to the newest slab, and leaves a
// gap behind. So a snapshot costs each later update the copy of one row at most, however large
// slabs are. Slabs that are mostly gaps are given up, two of their rows moving for each gap that
// comes into being, so that gaps never take up much more than the rows do.
#ifndef LEEWAY_PS_STORE_SPARSE_ROWS_H_
#define LEEWAY_PS_STORE_SPARSE_ROWS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "ps/store/initial_values.h"
#include "ps/store/sparse/row_index.h"
#include "ps/store/sparse/row_slab.h"
#include "runtime/memory/prefetch.h"

namespace leeway::ps {

template <class Stored>
class Rows {
  using RowLocation = RowIndex::RowLocation;  // slab and row; the row takes the last row_bits_
  using Slab = RowSlab<Stored>;

 public:
  using Compute = ComputeOf<Stored>;

  // A row to write to, until the next call.
  struct Row {
    Stored* values;
    Compute* state;  // slot after slot
    std::uint64_t* steps;
  };

  // More than these and there might be no number for a place.
  static constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 30;

  // `seed`: of the hash of keys.
  Rows(const TableSpec& spec, const Updater& updater, BlockPool* pool, std::uint64_t seed)
      : pool_(pool),
        width_(spec.row_width),
        initial_(spec),
        state_slots_(static_cast<std::uint32_t>(updater.state_slots())),
        row_bits_(std::bit_width(FullShape(width_).rows - 1)),
        row_mask_((RowLocation{1} << row_bits_) - 1),
        one_line_each_(width_ != 0 && state_slots_ == 0 &&
                       runtime::kCacheLine % (width_ * sizeof(Stored)) == 0),
        index_(seed) {
    for (std::uint32_t slot = 0; slot < state_slots_; ++slot) {
      initial_state_.push_back(static_cast<Compute>(updater.initial_state(static_cast<int>(slot))));
    }
  }

  std::uint64_t size() const { return index_.size(); }
  std::uint64_t bytes() const { return bytes_; }  // of values and state
  std::uint64_t moves() const { return moves_; }  // rows that moved for a snapshot's sake
  // Whether there may be so many more rows.
  bool HasRoomFor(std::uint64_t rows) const {
    return size() + rows <= kRowsMax && slabs_.size() + rows <= std::uint64_t{1}
                                                                    << (32 - row_bits_);
  }
  // The memory of all of it, empty places included.
  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = index_.bytes() + slabs_.capacity() * sizeof(Slab);
    for (const Slab& slab : slabs_) bytes += slab.memory_bytes();
    return bytes;
  }

  // The part of it that is allocated for rows; takes no time to compute.
  std::uint64_t charged_bytes() const { return slab_bytes_ + size() * kIndexBytes; }
  // The bytes that the keys' rows, with so many elements each, would add at most, and exactly: rows
  // that are there in that width add nothing.
  std::uint64_t BytesForNew(std::uint64_t rows, std::uint64_t elements) const {
    return rows * (Slab::kRowBytes + kIndexBytes + (width_ == 0 ? kExtentBytes : 0)) +
           elements * Slab::ElementBytes(state_slots_);
  }
  template <class WidthOfKey>
  std::uint64_t BytesForNew(std::span<const std::uint64_t> keys, const WidthOfKey& width) const {
    std::uint64_t rows = 0, elements = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto there = Find(keys[i]);
      if (there.has_value() && there->size() == width(i)) continue;
      ++rows;
      elements += width(i);
    }
    return BytesForNew(rows, elements);
  }

  // A key, and where its row most likely lies.
  struct Sought {
    std::uint64_t key = 0;
    const std::uint64_t* key_there = nullptr;  // null: nothing is known of it
    Stored* values = nullptr;
    std::uint64_t* steps = nullptr;
    Slab* slab = nullptr;

    bool IsRight() const { return key_there != nullptr && *key_there == key; }
  };
  // Looks up many keys, one after the other: row_batch.h.
  class Batch;

  // The values, or nothing if the row has never been written.
  std::optional<std::span<const Stored>> Find(std::uint64_t key) const {
    return Find(Sought{.key = key});
  }
  [[gnu::always_inline]] std::optional<std::span<const Stored>> Find(const Sought& sought) const {
    if (sought.IsRight()) [[likely]]
      return std::span<const Stored>(sought.values, WidthOf(sought));
    const RowLocation* const found = index_.Find(sought.key, index_.HashOf(sought.key), *this);
    if (found == nullptr) return std::nullopt;
    return ValuesIn(SlabOf(*found), RowOf(*found));
  }

  // What Update would give to be written to, in memory of the caller's; its steps.
  std::uint64_t Copy(std::uint64_t key, std::uint64_t width, std::vector<Stored>* values,
                     std::vector<Compute>* state) const {
    values->resize(width);
    state->resize(width * state_slots_);
    const RowLocation* const found = index_.Find(key, index_.HashOf(key), *this);
    if (found == nullptr || WidthOf(SlabOf(*found), RowOf(*found)) != width) {
      initial_.Fill(PlaceOfRow(key), width, values->data());
      FillState(width, state->data());
    } else {
      const Slab& slab = SlabOf(*found);
      const std::uint64_t offset = slab.OffsetOf(RowOf(*found), width);
      std::copy_n(slab.values(offset), width, values->data());
      std::copy_n(slab.state(offset), state->size(), state->data());
    }
    return found == nullptr ? 0 : SlabOf(*found).steps(RowOf(*found));
  }

  // The row of a key, to be updated. A new one starts from the initial values and state; one of
  // another width starts again from them, but keeps its steps.
  Row Update(std::uint64_t key, std::uint64_t width) { return Update(Sought{.key = key}, width); }
  [[gnu::always_inline]] Row Update(const Sought& sought, std::uint64_t width) {
    if (sought.IsRight() && MayUpdate(sought, width)) [[likely]] {
      sought.slab->generation = generation_;
      return {sought.values, StateOf(sought), sought.steps};
    }
    const RowLocation place = MakeReady(sought.key, width);
    return RowIn(SlabOf(place), RowOf(place), width);
  }

  // The row of a key, all of which the caller writes.
  Row Overwrite(std::uint64_t key, std::uint64_t width) {
    const RowLocation place = Open(key, width).first;
    return RowIn(SlabOf(place), RowOf(place), width);
  }

  StoreSnapshot FreezeSince(std::uint64_t generation) {
    StoreSnapshot snapshot{.pieces = {}, .generation = generation_++};
    for (Slab& slab : slabs_) {
      if (slab.HasRows() && slab.generation > generation) snapshot.pieces.push_back(slab.Freeze());
    }
    return snapshot;
  }

 private:
  friend class RowIndex;                                    // KeyAt, PrefetchKey
  static constexpr std::uint64_t kSlabBytesMin = 16 << 10;  // the first one's
  static constexpr std::uint64_t kSlabBytesMax = 256 << 10;
  static constexpr std::uint64_t kRaggedRows = 2048;  // in a slab of the full size
  static constexpr std::uint64_t kIndexBytes = 8;     // for each row, about
  static constexpr std::uint64_t kExtentBytes = 12;   // of a ragged row: where it lies, its width

  RowLocation LocationAt(std::uint32_t slab, std::uint32_t row) const {
    return slab << row_bits_ | row;
  }
  std::uint32_t RowOf(RowLocation place) const { return place & row_mask_; }
  const Slab& SlabOf(RowLocation place) const { return slabs_[place >> row_bits_]; }
  Slab& SlabOf(RowLocation place) { return slabs_[place >> row_bits_]; }
  std::uint64_t KeyAt(RowLocation place) const { return SlabOf(place).key(RowOf(place)); }
  // Functions that do nothing but this have to be inlined: the compiler takes calls of them for
  // calls without an effect, and leaves them out.
  [[gnu::always_inline]] void PrefetchKey(RowLocation place) const {
    __builtin_prefetch(SlabOf(place).key_memory(RowOf(place)));
  }

  std::uint64_t WidthOf(const Slab& slab, std::uint32_t row) const {
    return width_ != 0 ? width_ : slab.width(row);
  }

  std::uint64_t WidthOf(const Sought& sought) const {
    return width_ != 0 ? width_ : sought.slab->width(sought.slab->RowAt(sought.key_there));
  }
  Compute* StateOf(const Sought& sought) const {
    return sought.slab->state(sought.slab->OffsetAt(sought.values));
  }

  std::span<const Stored> ValuesIn(const Slab& slab, std::uint32_t row) const {
    const std::uint64_t width = WidthOf(slab, row);
    return {slab.values(slab.OffsetOf(row, width)), width};
  }

  Row RowIn(Slab& slab, std::uint32_t row, std::uint64_t width) const {
    slab.generation = generation_;
    const std::uint64_t offset = slab.OffsetOf(row, width);
    return {slab.values(offset), slab.state(offset), slab.step_counter(row)};
  }

  // Its values, and the state too if it is to be updated.
  [[gnu::always_inline]] void PrefetchRow(const Sought& sought, bool updating) const {
    const std::uint64_t width = WidthOf(sought);
    Prefetch(sought.values, width * sizeof(Stored));
    if (updating && state_slots_ != 0) {
      Prefetch(StateOf(sought), width * state_slots_ * sizeof(Compute));
    }
  }
  [[gnu::always_inline]] static void Prefetch(const void* memory, std::uint64_t size) {
    const auto* bytes = static_cast<const std::byte*>(memory);
    const std::uint64_t first = std::min(size, 4 * runtime::kCacheLine);
    for (std::uint64_t at = 0; at < first; at += runtime::kCacheLine)
      __builtin_prefetch(bytes + at);
    const bool whole_lines =
        (reinterpret_cast<std::uintptr_t>(bytes) | first) % runtime::kCacheLine == 0;
    if (!whole_lines) __builtin_prefetch(bytes + first - 1);
  }

  [[gnu::always_inline]] bool MayUpdate(const Sought& sought, std::uint64_t width) {
    return sought.slab->Writable(sought.slab->RowAt(sought.key_there)) && WidthOf(sought) == width;
  }

  // The place where the row of a key may be updated. The row may be new, of another width, at
  // another place than was guessed, or not to be written where it is.
  [[gnu::noinline]] RowLocation MakeReady(std::uint64_t key, std::uint64_t width) {
    const auto [place, fresh] = Open(key, width);
    if (fresh) {
      const Row row = RowIn(SlabOf(place), RowOf(place), width);
      initial_.Fill(PlaceOfRow(key), width, row.values);
      FillState(width, row.state);
    }
    return place;
  }

  void FillState(std::uint64_t width, Compute* state) const {
    for (std::uint32_t slot = 0; slot < state_slots_; ++slot) {
      std::fill_n(state + slot * width, width, initial_state_[slot]);
    }
  }

  // The place where the row may be written, and whether its values and state are still to be
  // written.
  std::pair<RowLocation, bool> Open(std::uint64_t key, std::uint64_t width) {
    const std::uint64_t hash = index_.HashOf(key);
    RowLocation* const found = index_.Find(key, hash, *this);
    bool fresh = found == nullptr;
    RowLocation place = fresh ? Append(key, width) : *found;
    if (fresh) {
      *SlabOf(place).step_counter(RowOf(place)) = 0;  // no row, should there be no memory below
      index_.Insert(hash, place, *this);
      bytes_ += width * Slab::ElementBytes(state_slots_);
    } else if (const std::uint64_t had = WidthOf(SlabOf(place), RowOf(place)); had != width) {
      fresh = true;
      const RowLocation old = place;
      *found = place = Append(key, width);
      *SlabOf(place).step_counter(RowOf(place)) = SlabOf(old).steps(RowOf(old));
      LeaveBehind(old);
      bytes_ += width * Slab::ElementBytes(state_slots_);
      bytes_ -= had * Slab::ElementBytes(state_slots_);
    } else if (!SlabOf(place).Writable(RowOf(place))) {
      const RowLocation old = place;
      *found = place = Move(old, width);
      LeaveBehind(old);
      ++moves_;
    }
    if (found != nullptr) place = *found;  // which may have moved once more
    return {place, fresh};
  }

  // A copy of a row in the newest slab.
  RowLocation Move(RowLocation from, std::uint64_t width) {
    const RowLocation to = Append(KeyAt(from), width);
    const Slab& old = SlabOf(from);
    Slab& slab = SlabOf(to);
    const std::uint64_t begin = old.OffsetOf(RowOf(from), width);
    const std::uint64_t offset = slab.OffsetOf(RowOf(to), width);
    std::copy_n(old.values(begin), width, slab.values(offset));
    std::copy_n(old.state(begin), width * state_slots_, slab.state(offset));
    *slab.step_counter(RowOf(to)) = old.steps(RowOf(from));
    slab.generation = generation_;
    return to;
  }

  void LeaveBehind(RowLocation old) {
    ++displaced_;
    SlabOf(old).LeaveBehind(RowOf(old));
    if (const std::uint32_t slab = old >> row_bits_; slab != newest_) EvacuateIfMostlyLeft(slab);
    Evacuate();
  }

  void EvacuateIfMostlyLeft(std::uint32_t index) {
    if (slabs_[index].evacuating || !slabs_[index].MostlyLeft()) return;
    slabs_[index].evacuating = true;
    evacuating_.push_back(index);
  }

  // Moves some rows out of the first slab that is given up. The index's keys stay as they are, so
  // that a place found in it may be written to afterwards.
  void Evacuate() {
    constexpr int kMoves = 2;
    constexpr int kLooks = 64;
    constexpr std::uint32_t kAhead = 8;
    int moves = 0;
    for (int looks = 0; looks < kLooks && moves < kMoves && !evacuating_.empty(); ++looks) {
      const std::uint32_t index = evacuating_.front();
      if (evacuated_ == slabs_[index].size()) {
        slab_bytes_ -= slabs_[index].own_bytes();
        slabs_[index] = Slab(SlabShape{}, nullptr);
        vacant_.push_back(index);
        evacuating_.pop_front();
        evacuated_ = 0;
        continue;
      }
      Slab& slab = slabs_[index];
      const std::uint32_t row = evacuated_++;
      if (const std::uint32_t ahead = row + kAhead; ahead < slab.size()) {
        index_.Prefetch(index_.HashOf(slab.key(ahead)));
      }
      if (!slab.IsThere(row)) continue;
      const std::uint64_t key = slab.key(row);
      *index_.Find(key, index_.HashOf(key), *this) =
          Move(LocationAt(index, row), WidthOf(slab, row));
      slabs_[index].LeaveBehind(row);
      ++displaced_;
      ++moves;
    }
  }

  RowLocation Append(std::uint64_t key, std::uint64_t width) {
    if (slabs_.empty() || !slabs_[newest_].HasRoomFor(width)) AddSlab(width);
    return LocationAt(newest_, slabs_[newest_].Append(key, width));
  }

  void AddSlab(std::uint64_t width) {
    if (!slabs_.empty()) EvacuateIfMostlyLeft(newest_);
    Slab slab(NextShape(width), pool_);
    const std::uint64_t slab_bytes = slab.own_bytes();
    if (vacant_.empty()) {
      slabs_.push_back(std::move(slab));  // which may throw, and then nothing has changed
      newest_ = static_cast<std::uint32_t>(slabs_.size() - 1);
      ++displaced_;
    } else {
      newest_ = vacant_.back();
      vacant_.pop_back();
      slabs_[newest_] = std::move(slab);
    }
    slab_bytes_ += slab_bytes;
  }

  // Slabs grow with the shard, so that small tables stay small.
  SlabShape NextShape(std::uint64_t width) const {
    return ShapeOf(width, std::clamp(bytes_, kSlabBytesMin, kSlabBytesMax));
  }
  SlabShape FullShape(std::uint64_t width) const { return ShapeOf(width, kSlabBytesMax); }
  SlabShape ShapeOf(std::uint64_t width, std::uint64_t bytes) const {
    const std::uint64_t element = Slab::ElementBytes(state_slots_);
    SlabShape shape{
        .rows = 0, .elements = 0, .state_slots = state_slots_, .own_widths = width_ == 0};
    if (shape.own_widths) {
      shape.rows = static_cast<std::uint32_t>(bytes * kRaggedRows / kSlabBytesMax);
      shape.elements = std::max(width, bytes / element);
    } else {
      const std::uint64_t rows = bytes / (width * element + Slab::kRowBytes);
      shape.rows = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, rows));
      shape.elements = shape.rows * width;
    }
    return shape;
  }

  BlockPool* const pool_;
  const std::uint64_t width_;  // 0: each row has its own
  const InitialValues initial_;
  const std::uint32_t state_slots_;
  const int row_bits_;
  const RowLocation row_mask_;
  const bool one_line_each_;  // rows without state, none of which lies in two lines of the cache
  std::vector<Compute> initial_state_;  // by slot
  RowIndex index_;
  std::vector<Slab> slabs_;
  std::uint32_t newest_ = 0;           // the slab that rows are appended to
  std::vector<std::uint32_t> vacant_;  // slabs that have been given up
  std::deque<std::uint32_t> evacuating_;
  std::uint32_t evacuated_ = 0;   // rows of the first of them that were looked at
  std::uint64_t generation_ = 1;  // of what is written now
  std::uint64_t bytes_ = 0;
  std::uint64_t slab_bytes_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t displaced_ = 0;  // how often a row has left its place, or slabs theirs
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROWS_H_
