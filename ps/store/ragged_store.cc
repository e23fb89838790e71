#include "ps/store/ragged_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/limits.h"
#include "ps/store/checks.h"
#include "ps/store/initial_values.h"
#include "ps/store/key_groups.h"
#include "ps/store/update_run.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

template <class Stored>
class RaggedStore final : public ShardStore {
 public:
  RaggedStore(const TableSpec& spec, const StorePlace& place, const Updater* updater)
      : spec_(spec), place_(place), updater_(updater), initial_(spec) {}

  absl::Status Check(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    return CheckWidths(KeyGroups<Stored>({&push, 1}, 0));
  }

  absl::Status Apply(const PushView& push) override { return ApplyCombined({&push, 1}, 1); }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    const KeyGroups<Stored> groups(pushes, 0);
    LEEWAY_RETURN_IF_ERROR(CheckWidths(groups));
    const UpdateTerms terms = TermsOf(spec_, pushes, contributors);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      Row& row = RowOf(groups.key(i), groups.widths(i).back());
      absl::InlinedVector<Compute*, 4> state;
      for (int slot = 0; slot < updater_->state_slots(); ++slot) {
        state.push_back(row.state.data() + static_cast<std::size_t>(slot) * row.values.size());
      }
      ApplyToRun(*updater_,
                 StoredRun<Stored>{row.values.data(), row.values.data(), state.data(),
                                   row.values.size(), ++row.steps},
                 groups.rows(i), terms);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, place_, pull.keys));
    const auto keys = pull.keys.as<std::uint64_t>();
    std::byte* data = nullptr;
    PullResult result;
    result.payload.push_back(runtime::Buffer::Allocate(keys.size() * sizeof(std::uint32_t), &data));
    auto* widths = reinterpret_cast<std::uint32_t*>(data);
    std::vector<const Row*> rows(keys.size(), nullptr);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const auto found = rows_.find(keys[i]); found != rows_.end()) rows[i] = &found->second;
      widths[i] = rows[i] == nullptr ? 0 : static_cast<std::uint32_t>(rows[i]->values.size());
      result.elements += widths[i];
    }
    LEEWAY_RETURN_IF_ERROR(CheckPullSize(spec_, place_, result.elements * sizeof(Stored)));
    result.payload.push_back(runtime::Buffer::Allocate(result.elements * sizeof(Stored), &data));
    result.keys = keys.size();
    Stored* to = reinterpret_cast<Stored*>(data);
    for (const Row* row : rows) {
      if (row != nullptr) to = std::copy(row->values.begin(), row->values.end(), to);
    }
    return result;
  }

  StoreStats stats() const override { return {.rows = rows_.size(), .value_bytes = value_bytes_}; }

 private:
  using Compute = ComputeOf<Stored>;

  struct Row {
    std::vector<Stored> values;
    std::vector<Compute> state;  // slot after slot
    std::uint64_t steps = 0;
  };

  bool last_wins() const { return updater_->combine() == Updater::Combine::kLast; }

  // All that does not depend on the rows there are.
  absl::Status CheckSizes(const PushView& push) const {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, place_, push.keys));
    const std::uint64_t keys = push.keys.as<std::uint64_t>().size();
    if (push.widths.size() != keys * sizeof(std::uint32_t)) {
      return Invalid(spec_, "a push of ", Count(keys, "key"), " with ", push.widths.size(),
                     " bytes of widths, which have 4 bytes each");
    }
    std::uint64_t elements = 0;
    for (const std::uint32_t width : push.widths.as<std::uint32_t>()) {
      if (width > proto::kRowWidthMax) {
        return Invalid(spec_, "a row of ", width, " elements, but it may have ",
                       proto::kRowWidthMax, " at most");
      }
      elements += width;
    }
    if (push.values.size() != elements * sizeof(Stored)) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes, but its widths add up to ",
                     Count(elements, "element"), " of ", sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  // Rows that are added up have one width, which is that of the row there is.
  absl::Status CheckWidths(const KeyGroups<Stored>& groups) const {
    if (last_wins()) return absl::OkStatus();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto found = rows_.find(groups.key(i));
      const std::uint64_t expected =
          found != rows_.end() ? found->second.values.size() : groups.widths(i).front();
      for (const std::uint32_t width : groups.widths(i)) {
        if (width == expected) continue;
        return Invalid(spec_, "a push of ", Count(width, "element"), " to key ", groups.key(i),
                       found != rows_.end() ? ", whose row has " : ", to which others pushed ",
                       expected);
      }
    }
    return absl::OkStatus();
  }

  Row& RowOf(std::uint64_t key, std::uint32_t width) {
    const auto [found, added] = rows_.try_emplace(key);
    Row& row = found->second;
    if (added || row.values.size() != width) Reset(key, width, row);
    return row;
  }

  void Reset(std::uint64_t key, std::uint32_t width, Row& row) {
    value_bytes_ -= BytesOf(row);
    row.values.resize(width);
    initial_.Fill(PlaceOfRow(key), width, row.values.data());
    row.state.clear();
    for (int slot = 0; slot < updater_->state_slots(); ++slot) {
      row.state.insert(row.state.end(), width, static_cast<Compute>(updater_->initial_state(slot)));
    }
    value_bytes_ += BytesOf(row);
  }

  static std::uint64_t BytesOf(const Row& row) {
    return row.values.size() * sizeof(Stored) + row.state.size() * sizeof(Compute);
  }

  const TableSpec spec_;
  const StorePlace place_;
  const Updater* const updater_;
  const InitialValues initial_;
  absl::flat_hash_map<std::uint64_t, Row> rows_;
  std::uint64_t value_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ShardStore> NewRaggedStore(const TableSpec& spec, const StorePlace& place,
                                           const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<RaggedStore<Stored>>(spec, place, updater);
  });
}

}  // namespace leeway::ps
