// One update of stored values with the sum of one or several pushes, in one pass over memory.
#ifndef LEEWAY_PS_STORE_UPDATE_RUN_H_
#define LEEWAY_PS_STORE_UPDATE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "leeway/updater.h"
#include "ps/store/elements.h"
#include "ps/updaters/builtin.h"
#include "runtime/base/flush_subnormals.h"

namespace leeway::ps {

// The terms of a whole update, of all its runs.
struct UpdateTerms {
  double learning_rate = 0;   // NaN: the updater's own
  std::uint32_t mean_of = 1;  // what is added up is divided by this
  // Set where one of the pushes holds NaN or infinity (ApplyToRun); null: nobody asks.
  bool* nonfinite = nullptr;
  // Set where an update leaves 16-bit values that are NaN or infinite, or where integers wrap
  // around when they are added; null: nobody asks.
  bool* overflow = nullptr;
};

// A dense block or one row. State lies slot after slot, each [size].
template <class Stored>
struct StoredRun {
  const Stored* before;  // [size]
  Stored* after;         // [size]; may be `before`
  const ComputeOf<Stored>* state_before;
  ComputeOf<Stored>* state_after;  // may be `state_before`
  std::size_t size;
  std::uint64_t step;  // as in leeway::UpdateRun
};

// Combines the pushes, each [run.size], in the order given and updates the run with the result.
// The same pushes in the same order give the same bits. There is at least one.
template <class Stored>
void ApplyToRun(const Updater& updater, const StoredRun<Stored>& run,
                std::span<const Stored* const> pushes, const UpdateTerms& terms);

// The same in two steps, with the same bits: first what the pushes, each [size], add up to …
template <class Stored>
void CombineRun(const Updater& updater, std::span<const Stored* const> pushes, std::size_t size,
                const UpdateTerms& terms, ComputeOf<Stored>* combined);
// … then the update with that, which is [run.size].
template <class Stored>
void ApplyCombinedToRun(const Updater& updater, const StoredRun<Stored>& run,
                        const ComputeOf<Stored>* combined, double learning_rate, bool* overflow);

// a + b, wrapped around at the ends of the range. The result is negative where it was wrapped.
template <class T>
inline T WrappingSum(T a, T b, T* sum) {
  using Unsigned = std::make_unsigned_t<T>;
  *sum = static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  return (a ^ *sum) & (b ^ *sum);
}

// Whether integers wrap around where `pushed` is added to `values`.
template <class T>
inline bool AddWraps(const T* pushed, std::size_t size, const T* values) {
  T signs = 0;
  for (std::size_t i = 0; i < size; ++i) {
    T sum = 0;
    signs |= WrappingSum(values[i], pushed[i], &sum);
  }
  return signs < 0;
}

// The updater `add` for a row that is short. Integers wrap around; true if one did.
template <class T>
inline bool AddRow(const T* __restrict pushed, std::size_t width, T* __restrict values) {
  T signs = 0;  // of integers
  const auto add = [&](std::size_t i) {
    if constexpr (std::is_integral_v<T>) {
      signs |= WrappingSum(values[i], pushed[i], &values[i]);
    } else {
      values[i] += pushed[i];
    }
  };
  // By known numbers: it takes a row's time to find out how long a loop as short as this is.
  constexpr std::size_t kAtOnce = 8;
  std::size_t begin = 0;
  for (; begin + kAtOnce <= width; begin += kAtOnce) {
    for (std::size_t i = 0; i < kAtOnce; ++i) add(begin + i);
  }
  for (; begin < width; ++begin) add(begin);
  return std::is_integral_v<T> && signs < 0;
}

// ApplyToRun for rows of one width that take one push each, with the same bits.
template <class Stored>
class RowUpdater {
 public:
  RowUpdater(const Updater& updater, std::size_t width, const UpdateTerms& terms)
      : updater_(updater),
        width_(width),
        terms_(terms),
        slots_(static_cast<std::size_t>(updater.state_slots())),
        direct_(!kIsHalf<Stored> && width <= kDirectMax && slots_ <= kSlotsMax &&
                (terms.mean_of <= 1 || updater.combine() == Updater::Combine::kLast)),
        adds_(OnlyAdds(updater)),
        flush_(direct_ && slots_ > 0) {}

  // Whether AddRow does the same: for rows so short that a call would take longer.
  bool only_adds() const { return direct_ && width_ <= kShortMax && adds_; }

  void Update(Stored* values, ComputeOf<Stored>* state, std::uint64_t step,
              const Stored* pushed) const {
    if constexpr (!kIsHalf<Stored>) {
      if (direct_) {  // there is nothing to be converted, added up or divided
        Stored* slots[kSlotsMax];
        for (std::size_t i = 0; i < slots_; ++i) slots[i] = state + i * width_;
        if constexpr (std::is_integral_v<Stored>) {
          const bool asked = adds_ && terms_.overflow != nullptr;
          if (asked && AddWraps(pushed, width_, values)) *terms_.overflow = true;
        }
        updater_.Update(
            UpdateRun<Stored>{values, pushed, slots, width_, step, terms_.learning_rate});
        return;
      }
    }
    UpdateAsRun(values, state, step, pushed);
  }

 private:
  [[gnu::noinline]] void UpdateAsRun(Stored* values, ComputeOf<Stored>* state, std::uint64_t step,
                                     const Stored* pushed) const {
    ApplyToRun<Stored>(updater_, {values, values, state, state, width_, step}, {&pushed, 1},
                       terms_);
  }

  static constexpr std::size_t kSlotsMax = 4;
  static constexpr std::size_t kDirectMax = 1024;
  static constexpr std::size_t kShortMax = 64;

  const Updater& updater_;
  const std::size_t width_;
  const UpdateTerms terms_;
  const std::size_t slots_;
  const bool direct_;
  const bool adds_;
  const runtime::FlushSubnormals flush_;  // once for all rows
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_UPDATE_RUN_H_
