#include "ps/store/update_run.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "ps/store/shard_store.h"
#include "runtime/base/flush_subnormals.h"
#include "runtime/memory/prefetch.h"

namespace leeway::ps {
namespace {

// Elements taken at a time: what is combined, converted and copied stays in the first cache.
constexpr std::size_t kStretch = 1024;
// For an updater without state, which does little but wait for memory: what is fetched ahead comes
// in portions that the processor can have under way at once, and it begins to read the next stretch
// sooner.
constexpr std::size_t kShortStretch = 256;

// Elements `offset` to `offset` + `size` of the pushes, added up in `scratch`, or where they are
// if there is nothing to compute.
template <class Stored>
const ComputeOf<Stored>* Combine(std::span<const Stored* const> pushes, std::size_t offset,
                                 std::size_t size, std::uint32_t mean_of, bool* overflow,
                                 ComputeOf<Stored>* scratch) {
  if constexpr (!kIsHalf<Stored>) {
    if (pushes.size() == 1 && mean_of == 1) return pushes.front() + offset;
  }
  if constexpr (std::is_integral_v<Stored>) {
    if (mean_of == 1) {
      std::copy_n(pushes.front() + offset, size, scratch);
      for (const Stored* push : pushes.subspan(1)) {
        if (AddRow(push + offset, size, scratch) && overflow != nullptr) *overflow = true;
      }
      return scratch;
    }
  }
  const auto scale = static_cast<ComputeOf<Stored>>(1) / static_cast<ComputeOf<Stored>>(mean_of);
  compress::ChosenKernels().sum.Of<Stored>()(pushes.data(), pushes.size(), offset, size, scale,
                                             scratch);
  return scratch;
}

// The pushes that count, and what their sum is divided by.
template <class Stored>
struct Share {
  Share(const Updater& updater, std::span<const Stored* const> all, const UpdateTerms& terms) {
    const bool last_wins = updater.combine() == Updater::Combine::kLast;
    pushes = last_wins ? all.last(1) : all;
    mean_of = last_wins ? 1 : std::max<std::uint32_t>(1, terms.mean_of);
  }
  std::span<const Stored* const> pushes;
  std::uint32_t mean_of;
};

template <class Stored>
void LookForNonFinite(std::span<const Stored* const> pushes, std::size_t offset, std::size_t size,
                      bool* found) {
  for (const Stored* push : pushes) {
    const std::span<const Stored> values(push + offset, size);
    *found = *found || HasNonFinite(DTypeOf<Stored>, std::as_bytes(values));
  }
}

// `gradient(offset, size)` gives the elements to update with.
template <class Stored, class Gradient>
void UpdateStretches(const Updater& updater, const StoredRun<Stored>& run, double learning_rate,
                     bool* overflow, const Gradient& gradient) {
  using Compute = ComputeOf<Stored>;
  const std::size_t stretch = updater.state_slots() == 0 ? kShortStretch : kStretch;
  const bool may_wrap = std::is_integral_v<Stored> && overflow != nullptr && OnlyAdds(updater);
  absl::InlinedVector<Compute*, 4> state;
  for (int slot = 0; slot < updater.state_slots(); ++slot) {
    state.push_back(run.state_after + static_cast<std::size_t>(slot) * run.size);
  }
  for (std::size_t offset = 0; offset < run.size; offset += stretch) {
    const std::size_t size = std::min(stretch, run.size - offset);
    if (run.state_before != run.state_after) {
      for (Compute* slot : state) {
        std::copy_n(run.state_before + (slot - run.state_after), size, slot);
      }
    }
    runtime::PrefetchAhead(std::span(run.before, run.size), offset, size);
    const Compute* pushed = gradient(offset, size);
    const auto update = [&](Compute* value) {
      const runtime::FlushSubnormals flush(!state.empty());
      updater.Update(
          UpdateRun<Compute>{value, pushed, state.data(), size, run.step, learning_rate});
    };
    if constexpr (kIsHalf<Stored>) {
      alignas(64) float value[kStretch];
      Load(run.before + offset, size, value);
      update(value);
      Store(value, size, run.after + offset);
      if (overflow != nullptr && !*overflow) {
        *overflow = HasNonFinite(DTypeOf<Stored>,
                                 std::as_bytes(std::span<const Stored>(run.after + offset, size)));
      }
    } else {
      if (run.before != run.after) std::copy_n(run.before + offset, size, run.after + offset);
      if constexpr (std::is_integral_v<Stored>) {
        if (may_wrap && AddWraps(pushed, size, run.after + offset)) *overflow = true;
      }
      update(run.after + offset);
    }
    for (Compute*& slot : state) slot += size;
  }
}

}  // namespace

template <class Stored>
void ApplyToRun(const Updater& updater, const StoredRun<Stored>& run,
                std::span<const Stored* const> pushes, const UpdateTerms& terms) {
  const Share<Stored> share(updater, pushes, terms);
  alignas(64) ComputeOf<Stored> combined[kStretch];
  const auto combine = [&, from = share.pushes, mean_of = share.mean_of](std::size_t offset,
                                                                         std::size_t size) {
    if (terms.nonfinite != nullptr) LookForNonFinite(pushes, offset, size, terms.nonfinite);
    return Combine(from, offset, size, mean_of, terms.overflow, combined);
  };
  UpdateStretches(updater, run, terms.learning_rate, terms.overflow, combine);
}

template <class Stored>
void CombineRun(const Updater& updater, std::span<const Stored* const> pushes, std::size_t size,
                const UpdateTerms& terms, ComputeOf<Stored>* combined) {
  const Share<Stored> share(updater, pushes, terms);
  for (std::size_t offset = 0; offset < size; offset += kStretch) {
    const std::size_t stretch = std::min(kStretch, size - offset);
    ComputeOf<Stored>* const to = combined + offset;
    const auto* from = Combine(share.pushes, offset, stretch, share.mean_of, terms.overflow, to);
    if (from != to) std::copy_n(from, stretch, to);
  }
}

template <class Stored>
void ApplyCombinedToRun(const Updater& updater, const StoredRun<Stored>& run,
                        const ComputeOf<Stored>* combined, double learning_rate, bool* overflow) {
  UpdateStretches(updater, run, learning_rate, overflow,
                  [&](std::size_t offset, std::size_t) { return combined + offset; });
}

#define LEEWAY_INSTANTIATE(Stored)                                                      \
  template void ApplyToRun(const Updater&, const StoredRun<Stored>&,                    \
                           std::span<const Stored* const>, const UpdateTerms&);         \
  template void CombineRun(const Updater&, std::span<const Stored* const>, std::size_t, \
                           const UpdateTerms&, ComputeOf<Stored>*);                     \
  template void ApplyCombinedToRun(const Updater&, const StoredRun<Stored>&,            \
                                   const ComputeOf<Stored>*, double, bool*)
LEEWAY_INSTANTIATE(float);
LEEWAY_INSTANTIATE(double);
LEEWAY_INSTANTIATE(Float16);
LEEWAY_INSTANTIATE(BFloat16);
LEEWAY_INSTANTIATE(std::int32_t);
LEEWAY_INSTANTIATE(std::int64_t);
#undef LEEWAY_INSTANTIATE

}  // namespace leeway::ps
