// One update of stored values with what one or several pushes add up to, in one pass over memory.
#ifndef LEEWAY_PS_STORE_UPDATE_RUN_H_
#define LEEWAY_PS_STORE_UPDATE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "leeway/updater.h"
#include "ps/store/elements.h"

namespace leeway::ps {

// What holds for a whole update, however many runs it has.
struct UpdateTerms {
  double learning_rate = 0;   // NaN: the updater's own
  std::uint32_t mean_of = 1;  // what is added up is divided by this
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
                        const ComputeOf<Stored>* combined, double learning_rate);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_UPDATE_RUN_H_
