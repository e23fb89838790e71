// The rows of a sparse or ragged shard by key, in slabs that can be frozen.
//
// A row that a snapshot looks at is not written: it first moves to the newest slab, and leaves a
// gap behind. So a snapshot costs each later update the copy of one row at most, however large
// slabs are. Slabs that are mostly gaps are given up, two of their rows moving for each gap that
// comes into being, so that gaps never take up much more than the rows do.
#ifndef LEEWAY_PS_STORE_ROWS_H_
#define LEEWAY_PS_STORE_ROWS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "ps/store/initial_values.h"
#include "ps/store/row_slab.h"

namespace leeway::ps {

template <class Stored>
class Rows {
 public:
  using Compute = ComputeOf<Stored>;

  // A row to write to, until the next call.
  struct Row {
    Stored* values;
    Compute* state;  // slot after slot
    std::uint64_t* steps;
  };

  Rows(const TableSpec& spec, const Updater& updater, SpareMemory* spare)
      : spare_(spare),
        width_(spec.row_width),
        initial_(spec),
        state_slots_(static_cast<std::uint32_t>(updater.state_slots())) {
    for (std::uint32_t slot = 0; slot < state_slots_; ++slot) {
      initial_state_.push_back(static_cast<Compute>(updater.initial_state(static_cast<int>(slot))));
    }
  }

  std::uint64_t size() const { return index_.size(); }
  std::uint64_t bytes() const { return bytes_; }  // of values and state
  std::uint64_t moves() const { return moves_; }  // rows that moved for a snapshot's sake

  // The values, or nothing if the row has never been written.
  std::optional<std::span<const Stored>> Find(std::uint64_t key) const {
    const auto found = index_.find(key);
    if (found == index_.end()) return std::nullopt;
    const Place place = found->second;
    const Slab& slab = slabs_[place.slab];
    const std::uint64_t width = WidthOf(slab, place.row);
    return std::span<const Stored>(slab.values(slab.OffsetOf(place.row, width)), width);
  }

  // The keys will be asked for in this order: begins to bring what keys[i] and a few later ones
  // need into the cache, so that the processor waits for many of them at once rather than for each.
  void PrefetchBeyond(std::span<const std::uint64_t> keys, std::size_t i) const {
    if (i + kIndexAhead < keys.size()) index_.prefetch(keys[i + kIndexAhead]);
    if (i + kRowAhead < keys.size()) PrefetchRow(keys[i + kRowAhead]);
  }

  // The row of a key, to be updated. A new one starts from the initial values and state; one of
  // another width starts again from them, but keeps its steps.
  Row Update(std::uint64_t key, std::uint64_t width) {
    const auto [row, fresh] = Open(key, width);
    if (fresh) {
      initial_.Fill(PlaceOfRow(key), width, row.values);
      for (std::uint32_t slot = 0; slot < state_slots_; ++slot) {
        std::fill_n(row.state + slot * width, width, initial_state_[slot]);
      }
    }
    return row;
  }

  // The row of a key, all of which the caller writes.
  Row Overwrite(std::uint64_t key, std::uint64_t width) { return Open(key, width).first; }

  StoreSnapshot FreezeSince(std::uint64_t generation) {
    StoreSnapshot snapshot{.pieces = {}, .generation = generation_++};
    for (Slab& slab : slabs_) {
      if (slab.HasRows() && slab.generation > generation) snapshot.pieces.push_back(slab.Freeze());
    }
    return snapshot;
  }

 private:
  using Slab = RowSlab<Stored>;
  struct Place {
    std::uint32_t slab = 0;
    std::uint32_t row = 0;
  };

  static constexpr std::size_t kIndexAhead = 24;  // keys
  static constexpr std::size_t kRowAhead = 12;
  static constexpr std::uint64_t kCacheLine = 64;
  static constexpr std::uint64_t kSlabBytesMin = 16 << 10;  // the first one's
  static constexpr std::uint64_t kSlabBytesMax = 256 << 10;
  static constexpr std::uint64_t kRaggedRows = 2048;  // in a slab of the full size

  std::uint64_t WidthOf(const Slab& slab, std::uint32_t row) const {
    return width_ != 0 ? width_ : slab.width(row);
  }

  // Its index entry is expected to be in the cache.
  void PrefetchRow(std::uint64_t key) const {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    const Place place = found->second;
    const Slab& slab = slabs_[place.slab];
    const std::uint64_t width = WidthOf(slab, place.row);
    const auto* values =
        reinterpret_cast<const std::byte*>(slab.values(slab.OffsetOf(place.row, width)));
    const std::uint64_t bytes = std::min(width * sizeof(Stored), 4 * kCacheLine);
    for (std::uint64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(values + at);
    if (bytes % kCacheLine != 0 || reinterpret_cast<std::uintptr_t>(values) % kCacheLine != 0) {
      __builtin_prefetch(values + bytes - 1);
    }
    __builtin_prefetch(slab.step_counter(place.row));
  }

  // Whether the row's values and state are still to be written.
  std::pair<Row, bool> Open(std::uint64_t key, std::uint64_t width) {
    const auto [found, added] = index_.try_emplace(key);
    Place& place = found->second;
    bool fresh = added;
    if (added) {
      place = Append(key, width);
      *slabs_[place.slab].step_counter(place.row) = 0;
      bytes_ += width * Slab::ElementBytes(state_slots_);
    } else if (const std::uint64_t had = WidthOf(slabs_[place.slab], place.row); had != width) {
      fresh = true;
      const Place old = place;
      place = Append(key, width);
      *slabs_[place.slab].step_counter(place.row) = slabs_[old.slab].steps(old.row);
      LeaveBehind(old);
      bytes_ += width * Slab::ElementBytes(state_slots_);
      bytes_ -= had * Slab::ElementBytes(state_slots_);
    } else if (!slabs_[place.slab].Writable(place.row)) {
      const Place old = place;
      place = Move(old, width);
      LeaveBehind(old);
      ++moves_;
    }
    Slab& slab = slabs_[place.slab];
    slab.generation = generation_;
    const std::uint64_t offset = slab.OffsetOf(place.row, width);
    return {{slab.values(offset), slab.state(offset), slab.step_counter(place.row)}, fresh};
  }

  // A copy of a row in the newest slab.
  Place Move(Place from, std::uint64_t width) {
    const Place to = Append(slabs_[from.slab].key(from.row), width);
    const Slab& old = slabs_[from.slab];
    Slab& slab = slabs_[to.slab];
    const std::uint64_t begin = old.OffsetOf(from.row, width);
    const std::uint64_t offset = slab.OffsetOf(to.row, width);
    std::copy_n(old.values(begin), width, slab.values(offset));
    std::copy_n(old.state(begin), width * state_slots_, slab.state(offset));
    *slab.step_counter(to.row) = old.steps(from.row);
    slab.generation = generation_;
    return to;
  }

  void LeaveBehind(Place old) {
    slabs_[old.slab].LeaveBehind(old.row);
    if (old.slab != newest_) EvacuateIfMostlyLeft(old.slab);
    Evacuate();
  }

  void EvacuateIfMostlyLeft(std::uint32_t index) {
    if (slabs_[index].evacuating || !slabs_[index].MostlyLeft()) return;
    slabs_[index].evacuating = true;
    evacuating_.push_back(index);
  }

  // Moves some rows out of the first slab that is given up. The index's keys stay as they are.
  void Evacuate() {
    constexpr int kMoves = 2;
    constexpr int kLooks = 64;
    constexpr std::uint32_t kAhead = 8;
    int moves = 0;
    for (int looks = 0; looks < kLooks && moves < kMoves && !evacuating_.empty(); ++looks) {
      const std::uint32_t index = evacuating_.front();
      if (evacuated_ == slabs_[index].size()) {
        slabs_[index] = Slab(SlabShape{}, nullptr);
        vacant_.push_back(index);
        evacuating_.pop_front();
        evacuated_ = 0;
        continue;
      }
      const Place old{index, evacuated_++};
      if (const std::uint32_t ahead = old.row + kAhead; ahead < slabs_[index].size()) {
        index_.prefetch(slabs_[index].key(ahead));
      }
      if (!slabs_[index].IsThere(old.row)) continue;
      index_.find(slabs_[index].key(old.row))->second = Move(old, WidthOf(slabs_[index], old.row));
      slabs_[index].LeaveBehind(old.row);
      ++moves;
    }
  }

  Place Append(std::uint64_t key, std::uint64_t width) {
    if (slabs_.empty() || !slabs_[newest_].HasRoomFor(width)) AddSlab(width);
    return {newest_, slabs_[newest_].Append(key, width)};
  }

  void AddSlab(std::uint64_t width) {
    if (!slabs_.empty()) EvacuateIfMostlyLeft(newest_);
    Slab slab(NextShape(width), spare_);
    if (vacant_.empty()) {
      newest_ = static_cast<std::uint32_t>(slabs_.size());
      slabs_.push_back(std::move(slab));
    } else {
      newest_ = vacant_.back();
      vacant_.pop_back();
      slabs_[newest_] = std::move(slab);
    }
  }

  // Slabs grow with the shard, so that small tables stay small.
  SlabShape NextShape(std::uint64_t width) const {
    const std::uint64_t bytes = std::clamp(bytes_, kSlabBytesMin, kSlabBytesMax);
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

  SpareMemory* const spare_;
  const std::uint64_t width_;  // 0: each row has its own
  const InitialValues initial_;
  const std::uint32_t state_slots_;
  std::vector<Compute> initial_state_;  // by slot
  absl::flat_hash_map<std::uint64_t, Place> index_;
  std::vector<Slab> slabs_;
  std::uint32_t newest_ = 0;           // the slab that rows are appended to
  std::vector<std::uint32_t> vacant_;  // slabs that have been given up
  std::deque<std::uint32_t> evacuating_;
  std::uint32_t evacuated_ = 0;   // rows of the first of them that were looked at
  std::uint64_t generation_ = 1;  // of what is written now
  std::uint64_t bytes_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_ROWS_H_
