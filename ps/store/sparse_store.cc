#include "ps/store/sparse_store.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ps/store/checks.h"
#include "ps/store/initial_values.h"
#include "ps/store/key_groups.h"
#include "ps/store/row_slabs.h"
#include "ps/store/update_run.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

template <class Stored>
class SparseStore final : public ShardStore {
 public:
  SparseStore(const TableSpec& spec, const StorePlace& place, const Updater* updater)
      : spec_(spec),
        place_(place),
        updater_(updater),
        initial_(spec),
        rows_(spec.row_width, updater) {}

  absl::Status Check(const PushView& push) const override {
    if (!push.widths.empty()) return Invalid(spec_, "it is sparse, but the push has widths");
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, place_, push.keys));
    const std::uint64_t keys = push.keys.as<std::uint64_t>().size();
    if (push.values.size() != keys * RowBytes()) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes for ", Count(keys, "key"),
                     ", but it has rows of ", Count(spec_.row_width, "element"), " of ",
                     sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  absl::Status Apply(const PushView& push) override { return ApplyCombined({&push, 1}, 1); }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(Check(push));
    const KeyGroups<Stored> groups(pushes, spec_.row_width);
    const UpdateTerms terms = TermsOf(spec_, pushes, contributors);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::uint64_t row = RowOf(groups.key(i));
      const auto state = rows_.state(row);
      Stored* const values = rows_.values(row);
      ApplyToRun(
          *updater_,
          StoredRun<Stored>{values, values, state.data(), spec_.row_width, ++rows_.steps(row)},
          groups.rows(i), terms);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, place_, pull.keys));
    const auto keys = pull.keys.as<std::uint64_t>();
    LEEWAY_RETURN_IF_ERROR(CheckPullSize(spec_, place_, keys.size() * RowBytes()));
    std::byte* data = nullptr;
    PullResult result;
    result.payload.push_back(runtime::Buffer::Allocate(keys.size() * RowBytes(), &data));
    result.keys = keys.size();
    result.elements = keys.size() * spec_.row_width;
    Stored* to = reinterpret_cast<Stored*>(data);
    for (const std::uint64_t key : keys) {
      if (const auto found = index_.find(key); found != index_.end()) {
        std::copy_n(rows_.values(found->second), spec_.row_width, to);
      } else {
        initial_.Fill(PlaceOfRow(key), spec_.row_width, to);
      }
      to += spec_.row_width;
    }
    return result;
  }

  StoreStats stats() const override { return {.rows = rows_.size(), .value_bytes = rows_.bytes()}; }

 private:
  std::uint64_t RowBytes() const { return spec_.row_width * sizeof(Stored); }

  std::uint64_t RowOf(std::uint64_t key) {
    const auto [found, added] = index_.try_emplace(key, rows_.size());
    if (added) initial_.Fill(PlaceOfRow(key), spec_.row_width, rows_.values(rows_.Append()));
    return found->second;
  }

  const TableSpec spec_;
  const StorePlace place_;
  const Updater* const updater_;
  const InitialValues initial_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> index_;  // key → row
  RowSlabs<Stored> rows_;
};

}  // namespace

std::unique_ptr<ShardStore> NewSparseStore(const TableSpec& spec, const StorePlace& place,
                                           const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<SparseStore<Stored>>(spec, place, updater);
  });
}

}  // namespace leeway::ps
