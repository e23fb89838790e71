#include "ps/store/update_run.h"

#include <algorithm>
#include <type_traits>

#include "absl/container/inlined_vector.h"

namespace leeway::ps {
namespace {

// Elements taken at a time: what is combined, converted and copied stays in the first cache.
constexpr std::size_t kStretch = 1024;

template <class T>
void AddTo(T* __restrict sum, const T* __restrict more, std::size_t size) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // whose overflow is defined
    for (std::size_t i = 0; i < size; ++i) {
      sum[i] = static_cast<T>(static_cast<Unsigned>(sum[i]) + static_cast<Unsigned>(more[i]));
    }
  } else {
    for (std::size_t i = 0; i < size; ++i) sum[i] += more[i];
  }
}

// Integers have no mean (TableSpec::Validate).
template <class T>
void Divide(T* sum, std::uint32_t by, std::size_t size) {
  if constexpr (!std::is_integral_v<T>) {
    const T scale = static_cast<T>(1) / static_cast<T>(by);
    for (std::size_t i = 0; i < size; ++i) sum[i] *= scale;
  }
}

// Elements `offset` to `offset` + `size` of the pushes, added up in `scratch`, or where they are
// if there is nothing to compute.
template <class Stored>
const ComputeOf<Stored>* Combine(std::span<const Stored* const> pushes, std::size_t offset,
                                 std::size_t size, std::uint32_t mean_of,
                                 ComputeOf<Stored>* scratch) {
  if constexpr (!kIsHalf<Stored>) {
    if (pushes.size() == 1 && mean_of == 1) return pushes.front() + offset;
  }
  Load(pushes.front() + offset, size, scratch);
  for (const Stored* push : pushes.subspan(1)) {
    if constexpr (kIsHalf<Stored>) {
      alignas(64) float widened[kStretch];
      Load(push + offset, size, widened);
      AddTo(scratch, widened, size);
    } else {
      AddTo(scratch, push + offset, size);
    }
  }
  if (mean_of != 1) Divide(scratch, mean_of, size);
  return scratch;
}

}  // namespace

template <class Stored>
void ApplyToRun(const Updater& updater, const StoredRun<Stored>& run,
                std::span<const Stored* const> pushes, const UpdateTerms& terms) {
  using Compute = ComputeOf<Stored>;
  const bool last_wins = updater.combine() == Updater::Combine::kLast;
  const std::span<const Stored* const> used = last_wins ? pushes.last(1) : pushes;
  const std::uint32_t mean_of = last_wins ? 1 : std::max<std::uint32_t>(1, terms.mean_of);

  alignas(64) Compute combined[kStretch];
  absl::InlinedVector<Compute*, 4> state(run.state, run.state + updater.state_slots());
  for (std::size_t offset = 0; offset < run.size; offset += kStretch) {
    const std::size_t size = std::min(kStretch, run.size - offset);
    const Compute* gradient = Combine(used, offset, size, mean_of, combined);
    const auto update = [&](Compute* value) {
      updater.Update(
          UpdateRun<Compute>{value, gradient, state.data(), size, run.step, terms.learning_rate});
    };
    if constexpr (kIsHalf<Stored>) {
      alignas(64) float value[kStretch];
      Load(run.before + offset, size, value);
      update(value);
      Store(value, size, run.after + offset);
    } else {
      if (run.before != run.after) std::copy_n(run.before + offset, size, run.after + offset);
      update(run.after + offset);
    }
    for (Compute*& slot : state) slot += size;
  }
}

#define LEEWAY_INSTANTIATE(Stored)                                   \
  template void ApplyToRun(const Updater&, const StoredRun<Stored>&, \
                           std::span<const Stored* const>, const UpdateTerms&)
LEEWAY_INSTANTIATE(float);
LEEWAY_INSTANTIATE(double);
LEEWAY_INSTANTIATE(Float16);
LEEWAY_INSTANTIATE(BFloat16);
LEEWAY_INSTANTIATE(std::int32_t);
LEEWAY_INSTANTIATE(std::int64_t);
#undef LEEWAY_INSTANTIATE

}  // namespace leeway::ps
