#include <algorithm>
#include <utility>
#include <vector>

#include "proto/messages/limits.h"
#include "ps/store/checks.h"
#include "ps/store/key_groups.h"
#include "ps/store/sparse/row_store.h"
#include "ps/store/sparse/row_stores.h"
#include "ps/store/update_run.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

template <class Stored>
class RaggedStore final : public RowStore<Stored, RaggedStore<Stored>> {
  using Base = RowStore<Stored, RaggedStore>;
  using Base::context_;
  using Base::rows_;
  using Base::spec_;
  using Base::updater_;
  using typename Base::Batch;
  using typename Base::Charging;
  using typename Base::Compute;

 public:
  RaggedStore(const TableSpec& spec, const StoreContext& context, const Updater* updater)
      : Base(spec, context, updater) {}

  absl::Status Check(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    return CheckWidths(KeyGroups<Stored>({&push, 1}, 0));
  }

  absl::Status CheckMemory(const PushView& push) const override {
    const auto widths = push.widths.as<std::uint32_t>();
    return this->CheckMemoryFor(push.keys.as<std::uint64_t>(), push.values.size() / sizeof(Stored),
                                [&widths](std::size_t i) { return widths[i]; });
  }

  absl::StatusOr<bool> WouldOverflow(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    const KeyGroups<Stored> groups({&push, 1}, 0);
    LEEWAY_RETURN_IF_ERROR(CheckWidths(groups));
    return this->WouldOverflowIn(groups, push,
                                 [&groups](std::size_t i) { return groups.widths(i).back(); });
  }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    const KeyGroups<Stored> groups(pushes, 0);
    LEEWAY_RETURN_IF_ERROR(CheckWidths(groups));
    LEEWAY_RETURN_IF_ERROR(this->CheckRoomFor(groups.size()));
    const UpdateTerms terms = TermsOf(spec_, pushes, contributors, &this->overflowed_);
    const Charging charging(this);
    Batch batch(rows_, groups.keys(), Batch::For::kUpdating);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      ApplyToRun(*updater_, this->RunOf(batch.Next(i), groups.widths(i).back()), groups.rows(i),
                 terms);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AggregatedPush> Combine(std::span<const PushView> pushes,
                                         std::uint32_t contributors) const override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(CheckSizes(push));
    const KeyGroups<Stored> groups(pushes, 0);
    LEEWAY_RETURN_IF_ERROR(CheckWidths(groups));
    AggregatedPush aggregate =
        CombineRows(*updater_, groups, 0, TermsOf(spec_, pushes, contributors, &this->overflowed_));
    aggregate.learning_rate = LastRate(pushes);
    return aggregate;
  }

  absl::Status ApplyAggregate(const AggregatedPush& aggregate) override {
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t elements,
                            CheckKeysAndWidths(aggregate.keys, aggregate.widths));
    LEEWAY_RETURN_IF_ERROR(CheckAggregate<Compute>(spec_, aggregate, elements));
    const auto keys = aggregate.keys.as<std::uint64_t>();
    const auto widths = aggregate.widths.as<std::uint32_t>();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      LEEWAY_RETURN_IF_ERROR(CheckWidth(keys[i], widths[i], widths[i]));
    }
    const Compute* values = aggregate.values.template as<Compute>().data();
    const double rate = RateOrTables(spec_, aggregate.learning_rate);
    LEEWAY_RETURN_IF_ERROR(this->CheckRoomFor(keys.size()));
    const Charging charging(this);
    Batch batch(rows_, keys, Batch::For::kUpdating);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ApplyCombinedToRun(*updater_, this->RunOf(batch.Next(i), widths[i]), values, rate,
                         &this->overflowed_);
      values += widths[i];
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, pull.keys));
    const auto keys = pull.keys.as<std::uint64_t>();
    std::byte* data = nullptr;
    PullResult result;
    result.payload.push_back(runtime::Buffer::Allocate(keys.size() * sizeof(std::uint32_t), &data));
    auto* widths = reinterpret_cast<std::uint32_t*>(data);
    std::vector<std::span<const Stored>> rows(keys.size());
    Batch batch(rows_, keys, Batch::For::kReading);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const auto found = rows_.Find(batch.Next(i))) rows[i] = *found;
      widths[i] = static_cast<std::uint32_t>(rows[i].size());
      result.elements += widths[i];
    }
    LEEWAY_RETURN_IF_ERROR(CheckPullSize(spec_, context_, result.elements * sizeof(Stored)));
    result.payload.push_back(runtime::Buffer::Allocate(result.elements * sizeof(Stored), &data));
    result.keys = keys.size();
    Stored* to = reinterpret_cast<Stored*>(data);
    for (const std::span<const Stored> row : rows) to = std::copy(row.begin(), row.end(), to);
    return result;
  }

 private:
  bool last_wins() const { return updater_->combine() == Updater::Combine::kLast; }

  // Each key has a width, within limits; what they add up to.
  absl::StatusOr<std::uint64_t> CheckKeysAndWidths(const runtime::Buffer& keys,
                                                   const runtime::Buffer& widths) const {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, keys));
    const std::uint64_t rows = keys.as<std::uint64_t>().size();
    if (widths.size() != rows * sizeof(std::uint32_t)) {
      return Invalid(spec_, "a push of ", Count(rows, "key"), " with ", widths.size(),
                     " bytes of widths, which have 4 bytes each");
    }
    std::uint64_t elements = 0;
    for (const std::uint32_t width : widths.as<std::uint32_t>()) {
      if (width > proto::kRowWidthMax) {
        return Invalid(spec_, "a row of ", width, " elements, but it may have ",
                       proto::kRowWidthMax, " at most");
      }
      elements += width;
    }
    return elements;
  }

  // All that does not depend on the rows there are.
  absl::Status CheckSizes(const PushView& push) const {
    LEEWAY_ASSIGN_OR_RETURN(const std::uint64_t elements,
                            CheckKeysAndWidths(push.keys, push.widths));
    if (push.values.size() != elements * sizeof(Stored)) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes, but its widths add up to ",
                     Count(elements, "element"), " of ", sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  // Rows that are added up have one width, which is that of the row there is; `others`: of what
  // else is pushed to it.
  absl::Status CheckWidth(std::uint64_t key, std::uint32_t width, std::uint32_t others) const {
    if (last_wins()) return absl::OkStatus();
    const auto found = rows_.Find(key);
    const std::uint64_t expected = found ? found->size() : others;
    if (width == expected) return absl::OkStatus();
    return Invalid(spec_, "a push of ", Count(width, "element"), " to key ", key,
                   found ? ", whose row has " : ", to which others pushed ", expected);
  }

  absl::Status CheckWidths(const KeyGroups<Stored>& groups) const {
    if (last_wins()) return absl::OkStatus();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const std::uint32_t width : groups.widths(i)) {
        LEEWAY_RETURN_IF_ERROR(CheckWidth(groups.key(i), width, groups.widths(i).front()));
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<ShardStore> NewRaggedStore(const TableSpec& spec, const StoreContext& context,
                                           const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<RaggedStore<Stored>>(spec, context, updater);
  });
}

}  // namespace leeway::ps
