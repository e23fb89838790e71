#include <algorithm>
#include <utility>

#include "ps/store/checks.h"
#include "ps/store/initial_values.h"
#include "ps/store/key_groups.h"
#include "ps/store/sparse/row_store.h"
#include "ps/store/sparse/row_stores.h"
#include "ps/store/update_run.h"
#include "runtime/base/status_macros.h"
#include "runtime/memory/copy_row.h"
#include "runtime/memory/prefetch.h"

namespace leeway::ps {
namespace {

template <class Stored>
class SparseStore final : public RowStore<Stored, SparseStore<Stored>> {
  using Base = RowStore<Stored, SparseStore>;
  using Base::context_;
  using Base::rows_;
  using Base::spec_;
  using Base::updater_;
  using typename Base::Batch;
  using typename Base::Charging;
  using typename Base::Compute;
  using typename Base::Row;

 public:
  SparseStore(const TableSpec& spec, const StoreContext& context, const Updater* updater)
      : Base(spec, context, updater), initial_(spec) {}

  absl::Status Check(const PushView& push) const override {
    if (!push.widths.empty()) return Invalid(spec_, "it is sparse, but the push has widths");
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, push.keys));
    const std::uint64_t keys = push.keys.as<std::uint64_t>().size();
    if (push.values.size() != keys * RowBytes()) {
      return Invalid(spec_, "a push of ", push.values.size(), " bytes for ", Count(keys, "key"),
                     ", but it has rows of ", Count(spec_.row_width, "element"), " of ",
                     sizeof(Stored), " bytes each");
    }
    return CheckRate(spec_, push.learning_rate);
  }

  absl::Status CheckMemory(const PushView& push) const override {
    const auto keys = push.keys.as<std::uint64_t>();
    const std::uint64_t width = spec_.row_width;
    return this->CheckMemoryFor(keys, keys.size() * width, [width](std::size_t) { return width; });
  }

  absl::StatusOr<bool> WouldOverflow(const PushView& push) const override {
    LEEWAY_RETURN_IF_ERROR(Check(push));
    const KeyGroups<Stored> groups({&push, 1}, spec_.row_width);
    return this->WouldOverflowIn(groups, push, [this](std::size_t) { return spec_.row_width; });
  }

  absl::Status ApplyCombined(std::span<const PushView> pushes,
                             std::uint32_t contributors) override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(Check(push));
    const UpdateTerms terms = TermsOf(spec_, pushes, contributors, &this->overflowed_);
    if (pushes.size() == 1 && StrictlyIncreasing(pushes.front())) {
      return ApplyRows(pushes.front(), terms);
    }
    const KeyGroups<Stored> groups(pushes, spec_.row_width);
    LEEWAY_RETURN_IF_ERROR(this->CheckRoomFor(groups.size()));
    const Charging charging(this);
    Batch batch(rows_, groups.keys(), Batch::For::kUpdating);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      ApplyToRun(*updater_, this->RunOf(batch.Next(i), spec_.row_width), groups.rows(i), terms);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AggregatedPush> Combine(std::span<const PushView> pushes,
                                         std::uint32_t contributors) const override {
    for (const PushView& push : pushes) LEEWAY_RETURN_IF_ERROR(Check(push));
    AggregatedPush aggregate =
        CombineRows(*updater_, KeyGroups<Stored>(pushes, spec_.row_width), spec_.row_width,
                    TermsOf(spec_, pushes, contributors, &this->overflowed_));
    aggregate.learning_rate = LastRate(pushes);
    return aggregate;
  }

  absl::Status ApplyAggregate(const AggregatedPush& aggregate) override {
    if (!aggregate.widths.empty()) {
      return Invalid(spec_, "it is sparse, but the aggregate has widths");
    }
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, aggregate.keys));
    const auto keys = aggregate.keys.as<std::uint64_t>();
    LEEWAY_RETURN_IF_ERROR(
        CheckAggregate<Compute>(spec_, aggregate, keys.size() * spec_.row_width));
    const Compute* values = aggregate.values.template as<Compute>().data();
    const double rate = RateOrTables(spec_, aggregate.learning_rate);
    LEEWAY_RETURN_IF_ERROR(this->CheckRoomFor(keys.size()));
    const Charging charging(this);
    Batch batch(rows_, keys, Batch::For::kUpdating);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ApplyCombinedToRun(*updater_, this->RunOf(batch.Next(i), spec_.row_width), values, rate,
                         &this->overflowed_);
      values += spec_.row_width;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PullResult> Pull(const PullView& pull) override {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, pull.keys));
    const auto keys = pull.keys.as<std::uint64_t>();
    LEEWAY_RETURN_IF_ERROR(CheckPullSize(spec_, context_, keys.size() * RowBytes()));
    std::byte* data = nullptr;
    PullResult result;
    result.payload.push_back(runtime::Buffer::Allocate(keys.size() * RowBytes(), &data));
    result.keys = keys.size();
    result.elements = keys.size() * spec_.row_width;
    Stored* to = reinterpret_cast<Stored*>(data);
    const std::uint64_t width = spec_.row_width;
    Batch batch(rows_, keys, Batch::For::kReading);
    for (std::size_t i = 0; i < keys.size(); ++i, to += width) {
      if (const auto values = rows_.Find(batch.Next(i))) [[likely]] {
        runtime::CopyRow(values->data(), width * sizeof(Stored), to);
      } else {
        initial_.Fill(PlaceOfRow(keys[i]), width, to);
      }
    }
    return result;
  }

 private:
  static constexpr std::uint64_t kPushedAhead = 24;  // rows

  std::uint64_t RowBytes() const { return spec_.row_width * sizeof(Stored); }

  // A push without repeated keys.
  absl::Status ApplyRows(const PushView& push, const UpdateTerms& terms) {
    const auto keys = push.keys.as<std::uint64_t>();
    LEEWAY_RETURN_IF_ERROR(this->CheckRoomFor(keys.size()));
    const Charging charging(this);
    const RowUpdater<Stored> update(*updater_, spec_.row_width, terms);
    const Stored* const pushed = push.values.template as<Stored>().data();
    if constexpr (!kIsHalf<Stored>) {
      if (update.only_adds()) {
        AddRows(keys, pushed);
        return absl::OkStatus();
      }
    }
    UpdateRows(keys, pushed, update);
    return absl::OkStatus();
  }

  // Two functions, since what is done to a row is so little that what the other would keep in
  // registers counts.
  [[gnu::noinline]] void AddRows(std::span<const std::uint64_t> keys, const Stored* pushed) {
    bool wrapped = false;
    ForEachRow(keys, pushed,
               [width = spec_.row_width, &wrapped](const Row& row, const Stored* values) {
                 if (AddRow(values, width, row.values)) wrapped = true;
               });
    if (wrapped) this->overflowed_ = true;
  }
  [[gnu::noinline]] void UpdateRows(std::span<const std::uint64_t> keys, const Stored* pushed,
                                    const RowUpdater<Stored>& update) {
    ForEachRow(keys, pushed, [&update](const Row& row, const Stored* values) {
      update.Update(row.values, row.state, *row.steps, values);
    });
  }

  // Calls `take(row, pushed values)` for the next update of each row.
  template <class Take>
  [[gnu::always_inline]] void ForEachRow(std::span<const std::uint64_t> keys, const Stored* pushed,
                                         const Take& take) {
    const std::uint64_t width = spec_.row_width;
    Batch batch(rows_, keys, Batch::For::kUpdating);
    for (std::size_t i = 0; i < keys.size(); ++i, pushed += width) {
      if (i + kPushedAhead < keys.size()) Prefetch(pushed + kPushedAhead * width);
      const Row row = rows_.Update(batch.Next(i), width);
      ++*row.steps;
      take(row, pushed);
    }
  }

  // Values that a transport has just written are in the cache of another core, if in any, and the
  // processor's own prefetching begins anew at each page.
  [[gnu::always_inline]] void Prefetch(const Stored* row) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(row);
    const std::uint64_t first = std::min<std::uint64_t>(RowBytes(), 4 * runtime::kCacheLine);
    for (std::uint64_t at = 0; at < first; at += runtime::kCacheLine)
      __builtin_prefetch(bytes + at);
  }

  const InitialValues initial_;
};

}  // namespace

std::unique_ptr<ShardStore> NewSparseStore(const TableSpec& spec, const StoreContext& context,
                                           const Updater* updater) {
  return VisitStored(spec.dtype, [&]<class Stored>(Stored*) -> std::unique_ptr<ShardStore> {
    return std::make_unique<SparseStore<Stored>>(spec, context, updater);
  });
}

}  // namespace leeway::ps
