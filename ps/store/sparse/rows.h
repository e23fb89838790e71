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
  using Place = RowIndex::Place;  // slab and row; the row takes the last row_bits_
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

  // `seed`: of what decides where keys lie in memory.
  Rows(const TableSpec& spec, const Updater& updater, BlockPool* spare, std::uint64_t seed)
      : spare_(spare),
        width_(spec.row_width),
        initial_(spec),
        state_slots_(static_cast<std::uint32_t>(updater.state_slots())),
        row_bits_(std::bit_width(FullShape(width_).rows - 1)),
        row_mask_((Place{1} << row_bits_) - 1),
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
  // Whether there may be so many more.
  bool HasRoomFor(std::uint64_t rows) const {
    return size() + rows <= kRowsMax && slabs_.size() + rows <= std::uint64_t{1}
                                                                    << (32 - row_bits_);
  }
  // That all of it takes up, empty places included.
  std::uint64_t memory_bytes() const {
    std::uint64_t bytes = index_.bytes() + slabs_.capacity() * sizeof(Slab);
    for (const Slab& slab : slabs_) bytes += slab.memory_bytes();
    return bytes;
  }

  // The same as far as it is allocated for rows, which takes no time to tell.
  std::uint64_t charged_bytes() const { return slab_bytes_ + size() * kIndexBytes; }
  // What the keys' rows, with so many elements each, would add at most, and what exactly: rows
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

  // Some keys, and how they are looked up: one after the other, what later ones need being on its
  // way into the cache meanwhile, so that the processor waits for many of them at once. Some keys
  // at a time go through each step, so that what the step needs stays in registers. What a step has
  // found out the next one takes as it is: in a large table it is instructions that take the time.
  class Batch {
   public:
    enum class For { kReading, kUpdating };

    Batch(Rows& rows, std::span<const std::uint64_t> keys, For use)
        : rows_(rows),
          keys_(keys),
          use_(use),
          layout_(rows.index_.layout()),
          displaced_(rows.displaced_) {
      for (std::size_t i = 0; i < kIndexAhead; i += kStep) FetchIndex(i);
      for (std::size_t i = 0; i < kRowAhead; i += kStep) FetchRows(i);
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

    // To be called for 0, 1, 2, … in turn.
    [[gnu::always_inline]] const Sought& Next(std::size_t i) {
      if (rows_.displaced_ != displaced_) [[unlikely]]
        ForgetRows(i);
      if (i % kStep == 0) Fetch(i);
      return sought_[i % kSought];
    }

   private:
    static constexpr std::size_t kStep = 8;  // keys
    static constexpr std::size_t kIndexAhead = 8 * kStep;
    static constexpr std::size_t kRowAhead = 4 * kStep;
    static constexpr std::size_t kSought = 16 * kStep;  // no less than kIndexAhead + kStep
    static_assert(kSought >= kIndexAhead + kStep);

    // Apart from the loop around it, so that what each of them needs stays in registers.
    [[gnu::noinline]] void Fetch(std::size_t i) {
      if (rows_.index_.layout() != layout_) [[unlikely]]
        FindHomesAgain(i);
      FetchIndex(i + kIndexAhead);
      FetchRows(i + kRowAhead);
    }
    // Does something for the places from `begin` on that there are, in a loop of a known length for
    // all steps but the last.
    template <class OfOne>
    [[gnu::always_inline]] void ForStep(std::size_t begin, const OfOne& of_one) {
      if (begin + kStep <= keys_.size()) [[likely]] {
        for (std::size_t i = 0; i < kStep; ++i) of_one(i);
      } else {
        for (std::size_t i = 0; begin + i < keys_.size(); ++i) of_one(i);
      }
    }
    [[gnu::always_inline]] void FetchIndex(std::size_t begin) {
      const RowIndex::Homes homes(rows_.index_);
      const std::uint64_t* const keys = keys_.data() + std::min(begin, keys_.size());
      RowIndex::Home* const to = homes_ + begin % kSought;
      ForStep(
          begin, [&](std::size_t i) __attribute__((always_inline)) {
            const RowIndex::Home home = homes.Of(keys[i]);
            home.Prefetch();
            to[i] = home;
          });
    }
    [[gnu::always_inline]] void FetchRows(std::size_t begin) {
      use_ == For::kUpdating ? FetchRowsFor<true>(begin) : FetchRowsFor<false>(begin);
    }
    template <bool kUpdating>
    [[gnu::always_inline]] void FetchRowsFor(std::size_t begin) {
      rows_.one_line_each_ ? FetchLines<kUpdating>(begin) : FetchAnyRows<kUpdating>(begin);
    }
    // Of rows of one width and without state, each of which lies in one line of the cache.
    template <bool kUpdating>
    [[gnu::always_inline]] void FetchLines(std::size_t begin) {
      const std::uint64_t width = rows_.width_;
      FetchStep<kUpdating>(
          begin,
          [width](const Slab& slab, std::uint32_t row)
              __attribute__((always_inline)) { return slab.values(row * width); },
          [](const Sought& sought)
              __attribute__((always_inline)) { __builtin_prefetch(sought.values); });
    }
    template <bool kUpdating>
    [[gnu::noinline]] void FetchAnyRows(std::size_t begin) {
      const Rows& rows = rows_;
      FetchStep<kUpdating>(
          begin,
          [&rows](const Slab& slab, std::uint32_t row) {
            return slab.values(slab.OffsetOf(row, rows.width_));
          },
          [&rows](const Sought& sought) { rows.PrefetchRow(sought, kUpdating); });
    }
    // `values(slab, row)`: where the row's are; `fetch(sought)` begins to bring it into the cache,
    // all but its key and, which who only reads does not need, its steps.
    template <bool kSteps, class Values, class FetchRow>
    [[gnu::always_inline]] void FetchStep(std::size_t begin, const Values& values,
                                          const FetchRow& fetch) {
      // Copies: after each write to what is sought they would have to be read again.
      const int row_bits = rows_.row_bits_;
      const Place row_mask = rows_.row_mask_;
      Slab* const slabs = rows_.slabs_.data();
      const std::uint64_t* const keys = keys_.data() + std::min(begin, keys_.size());
      const RowIndex::Home* const homes = homes_ + begin % kSought;
      Sought* const to = sought_ + begin % kSought;
      ForStep(
          begin, [&](std::size_t i) __attribute__((always_inline)) {
            const Place* guess = homes[i].Guess();
            if (guess == nullptr && homes[i].full()) [[unlikely]] {
              guess = rows_.index_.GuessBeyondHome(keys[i]);
            }
            if (guess == nullptr) [[unlikely]] {
              to[i] = {.key = keys[i]};
              return;
            }
            Slab& slab = slabs[*guess >> row_bits];
            const std::uint32_t row = *guess & row_mask;
            const Sought found{.key = keys[i],
                               .key_there = slab.key_memory(row),
                               .values = values(slab, row),
                               .steps = slab.step_counter(row),
                               .slab = &slab};
            __builtin_prefetch(found.key_there);
            if (kSteps) __builtin_prefetch(found.steps);
            fetch(found);
            to[i] = found;
          });
    }
    // Of those whose rows have not been guessed yet, since the index has grown.
    [[gnu::noinline]] void FindHomesAgain(std::size_t i) {
      layout_ = rows_.index_.layout();
      const RowIndex::Homes homes(rows_.index_);
      const std::size_t end = std::min(i + kIndexAhead, keys_.size());
      for (std::size_t at = i + kRowAhead; at < end; ++at) {
        homes_[at % kSought] = homes.Of(keys_[at]);
      }
    }
    // Where rows were before some left their places is of no use any more.
    [[gnu::noinline]] void ForgetRows(std::size_t i) {
      displaced_ = rows_.displaced_;
      const std::size_t step = i / kStep * kStep;
      const std::size_t end = std::min(step + kRowAhead + kStep, keys_.size());
      for (std::size_t at = i; at < end; ++at) sought_[at % kSought].key_there = nullptr;
    }

    Rows& rows_;
    const std::span<const std::uint64_t> keys_;
    const For use_;
    std::uint64_t layout_;           // of the index when homes were found
    std::uint64_t displaced_;        // of the rows when those that are known of were found
    RowIndex::Home homes_[kSought];  // of the next keys
    Sought sought_[kSought];         // the next ones, fewer
  };
  using Sought = typename Batch::Sought;

  // The values, or nothing if the row has never been written.
  std::optional<std::span<const Stored>> Find(std::uint64_t key) const {
    return Find(Sought{.key = key});
  }
  [[gnu::always_inline]] std::optional<std::span<const Stored>> Find(const Sought& sought) const {
    if (sought.IsRight()) [[likely]]
      return std::span<const Stored>(sought.values, WidthOf(sought));
    const Place* const found = index_.Find(sought.key, index_.HashOf(sought.key), *this);
    if (found == nullptr) return std::nullopt;
    return ValuesIn(SlabOf(*found), RowOf(*found));
  }

  // The row of a key, to be updated. A new one starts from the initial values and state; one of
  // another width starts again from them, but keeps its steps.
  Row Update(std::uint64_t key, std::uint64_t width) { return Update(Sought{.key = key}, width); }
  [[gnu::always_inline]] Row Update(const Sought& sought, std::uint64_t width) {
    if (sought.IsRight() && MayUpdate(sought, width)) [[likely]] {
      sought.slab->generation = generation_;
      return {sought.values, StateOf(sought), sought.steps};
    }
    const Place place = MakeReady(sought.key, width);
    return RowIn(SlabOf(place), RowOf(place), width);
  }

  // The row of a key, all of which the caller writes.
  Row Overwrite(std::uint64_t key, std::uint64_t width) {
    const Place place = Open(key, width).first;
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

  Place PlaceAt(std::uint32_t slab, std::uint32_t row) const { return slab << row_bits_ | row; }
  std::uint32_t RowOf(Place place) const { return place & row_mask_; }
  const Slab& SlabOf(Place place) const { return slabs_[place >> row_bits_]; }
  Slab& SlabOf(Place place) { return slabs_[place >> row_bits_]; }
  std::uint64_t KeyAt(Place place) const { return SlabOf(place).key(RowOf(place)); }
  // Functions that do nothing but this have to be inlined: the compiler takes calls of them for
  // calls without an effect, and leaves them out.
  [[gnu::always_inline]] void PrefetchKey(Place place) const {
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

  // Where the row of a key may be updated, which may be new, of another width, not where it was
  // thought to be, or not to be written where it is.
  [[gnu::noinline]] Place MakeReady(std::uint64_t key, std::uint64_t width) {
    const auto [place, fresh] = Open(key, width);
    if (fresh) {
      const Row row = RowIn(SlabOf(place), RowOf(place), width);
      initial_.Fill(PlaceOfRow(key), width, row.values);
      for (std::uint32_t slot = 0; slot < state_slots_; ++slot) {
        std::fill_n(row.state + slot * width, width, initial_state_[slot]);
      }
    }
    return place;
  }

  // Where it may be written, and whether its values and state are still to be written.
  std::pair<Place, bool> Open(std::uint64_t key, std::uint64_t width) {
    const std::uint64_t hash = index_.HashOf(key);
    Place* const found = index_.Find(key, hash, *this);
    bool fresh = found == nullptr;
    Place place = fresh ? Append(key, width) : *found;
    if (fresh) {
      *SlabOf(place).step_counter(RowOf(place)) = 0;  // no row, should there be no memory below
      index_.Insert(hash, place, *this);
      bytes_ += width * Slab::ElementBytes(state_slots_);
    } else if (const std::uint64_t had = WidthOf(SlabOf(place), RowOf(place)); had != width) {
      fresh = true;
      const Place old = place;
      *found = place = Append(key, width);
      *SlabOf(place).step_counter(RowOf(place)) = SlabOf(old).steps(RowOf(old));
      LeaveBehind(old);
      bytes_ += width * Slab::ElementBytes(state_slots_);
      bytes_ -= had * Slab::ElementBytes(state_slots_);
    } else if (!SlabOf(place).Writable(RowOf(place))) {
      const Place old = place;
      *found = place = Move(old, width);
      LeaveBehind(old);
      ++moves_;
    }
    if (found != nullptr) place = *found;  // which may have moved once more
    return {place, fresh};
  }

  // A copy of a row in the newest slab.
  Place Move(Place from, std::uint64_t width) {
    const Place to = Append(KeyAt(from), width);
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

  void LeaveBehind(Place old) {
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
      *index_.Find(key, index_.HashOf(key), *this) = Move(PlaceAt(index, row), WidthOf(slab, row));
      slabs_[index].LeaveBehind(row);
      ++displaced_;
      ++moves;
    }
  }

  Place Append(std::uint64_t key, std::uint64_t width) {
    if (slabs_.empty() || !slabs_[newest_].HasRoomFor(width)) AddSlab(width);
    return PlaceAt(newest_, slabs_[newest_].Append(key, width));
  }

  void AddSlab(std::uint64_t width) {
    if (!slabs_.empty()) EvacuateIfMostlyLeft(newest_);
    Slab slab(NextShape(width), spare_);
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

  BlockPool* const spare_;
  const std::uint64_t width_;  // 0: each row has its own
  const InitialValues initial_;
  const std::uint32_t state_slots_;
  const int row_bits_;
  const Place row_mask_;
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
