// The look-up of many keys of a sparse or ragged shard, one after the other. What later keys need
// is on its way into the cache meanwhile, so that the processor waits for many of them at once.
//
// Some keys at a time go through each step, so that what the step needs stays in registers. A step
// takes the results of the one before as they are: in a large table it is instructions that take
// the time. Lives shorter than its Rows, which it may change between two keys.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_BATCH_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ps/store/sparse/row_index.h"
#include "ps/store/sparse/rows.h"

namespace leeway::ps {

template <class Stored>
class Rows<Stored>::Batch {
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
  // all but its key and its steps, which only updates need.
  template <bool kSteps, class Values, class FetchRow>
  [[gnu::always_inline]] void FetchStep(std::size_t begin, const Values& values,
                                        const FetchRow& fetch) {
    // Copies: after each write to what is sought they would have to be read again.
    const int row_bits = rows_.row_bits_;
    const RowLocation row_mask = rows_.row_mask_;
    Slab* const slabs = rows_.slabs_.data();
    const std::uint64_t* const keys = keys_.data() + std::min(begin, keys_.size());
    const RowIndex::Home* const homes = homes_ + begin % kSought;
    Sought* const to = sought_ + begin % kSought;
    ForStep(
        begin, [&](std::size_t i) __attribute__((always_inline)) {
          const RowLocation* guess = homes[i].Guess();
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
  // Forgets the places of rows that were found before some rows moved.
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

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_BATCH_H_
