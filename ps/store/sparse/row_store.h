// The part that sparse and ragged stores have in common: rows by key in slabs (Rows), the memory
// that they are charged, snapshots and loading. How a push gives a row its width is the business of
// the derived class.
#ifndef LEEWAY_PS_STORE_SPARSE_ROW_STORE_H_
#define LEEWAY_PS_STORE_SPARSE_ROW_STORE_H_

#include <cstdint>
#include <vector>

#include "ps/store/checks.h"
#include "ps/store/memory/table_memory.h"
#include "ps/store/shard_store.h"
#include "ps/store/sparse/row_batch.h"
#include "ps/store/sparse/row_pieces.h"
#include "ps/store/sparse/rows.h"
#include "ps/store/update_run.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

// `Derived` is final, and known here so that Apply calls no virtual function.
template <class Stored, class Derived>
class RowStore : public ShardStore {
 public:
  RowStore(const TableSpec& spec, const StoreContext& context, const Updater* updater)
      : spec_(spec),
        context_(context),
        updater_(updater),
        rows_(spec, *updater, context.pool, context.hash_seed),
        share_(context.memory) {}

  void UseSettings(const TableSpec& spec, const Updater* updater) final {
    spec_ = spec;
    updater_ = updater;
  }

  absl::Status Apply(const PushView& push) final {
    return static_cast<Derived*>(this)->ApplyCombined({&push, 1}, 1);
  }

  absl::Status Apply(const PushView& push, bool* nonfinite) final {
    *nonfinite = HasNonFinite(spec_.dtype, push.values.bytes());
    return Apply(push);
  }

  absl::StatusOr<bool> SumWouldOverflow(const AggregatedPush& sum) const final {
    LEEWAY_RETURN_IF_ERROR(CheckKeys(spec_, context_, sum.keys));
    const auto keys = sum.keys.as<std::uint64_t>();
    const auto widths = sum.widths.as<std::uint32_t>();
    const auto width = [&](std::size_t i) { return widths.empty() ? spec_.row_width : widths[i]; };
    if (!widths.empty() && widths.size() != keys.size()) {
      return Invalid(spec_, Count(keys.size(), "key"), " and ", Count(widths.size(), "width"));
    }
    std::uint64_t elements = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) elements += width(i);
    LEEWAY_RETURN_IF_ERROR(CheckAggregate<Compute>(spec_, sum, elements));
    const Compute* given = sum.values.template as<Compute>().data();
    bool overflow = false;
    std::vector<Stored> values;
    std::vector<Compute> state;
    for (std::size_t i = 0; i < keys.size() && !overflow; given += width(i++)) {
      const std::uint64_t steps = rows_.Copy(keys[i], width(i), &values, &state);
      ApplyCombinedToRun<Stored>(
          *updater_,
          {values.data(), values.data(), state.data(), state.data(), values.size(), steps + 1},
          given, RateOrTables(spec_, sum.learning_rate), &overflow);
    }
    return overflow;
  }

  StoreSnapshot FreezeSince(std::uint64_t generation) final {
    return rows_.FreezeSince(generation);
  }

  absl::Status Load(const FrozenPiece& piece) final {
    LEEWAY_RETURN_IF_ERROR(CheckRowsHere(spec_, context_, *updater_, piece));
    return Put(piece).status();
  }

  absl::StatusOr<std::uint64_t> LoadElsewhere(const FrozenPiece& piece, std::uint64_t) final {
    LEEWAY_RETURN_IF_ERROR(CheckPiece(spec_, *updater_, piece));
    return Put(piece);
  }

  StoreStats stats() const final {
    return {.rows = rows_.size(),
            .value_bytes = rows_.bytes(),
            .memory_bytes = rows_.memory_bytes(),
            .copies_on_write = rows_.moves()};
  }

 protected:
  using Batch = typename Rows<Stored>::Batch;
  using Row = typename Rows<Stored>::Row;
  using Sought = typename Rows<Stored>::Sought;
  using Compute = ComputeOf<Stored>;

  // At its end the store's share of the memory is what its rows take.
  class Charging {
   public:
    explicit Charging(RowStore* store) : store_(store) {}
    ~Charging() { store_->share_.Set(store_->rows_.charged_bytes()); }
    Charging(const Charging&) = delete;
    Charging& operator=(const Charging&) = delete;

   private:
    RowStore* const store_;
  };

  // Whether so many more rows may come into being.
  absl::Status CheckRoomFor(std::uint64_t more) const {
    return CheckRoom(spec_, context_, rows_, more);
  }

  // Whether there is memory for a push of those keys, whose rows have `elements` elements together
  // and `width(i)` each.
  template <class WidthOfKey>
  absl::Status CheckMemoryFor(std::span<const std::uint64_t> keys, std::uint64_t elements,
                              const WidthOfKey& width) const {
    if (share_.HasRoom(rows_.BytesForNew(keys.size(), elements))) return absl::OkStatus();
    const std::uint64_t more = rows_.BytesForNew(keys, width);
    return more == 0 ? absl::OkStatus() : share_.Check(spec_, more);
  }

  // Whether one of the groups' updates, of `width(i)` elements each, would.
  template <class Groups, class Width>
  bool WouldOverflowIn(const Groups& groups, const PushView& push, const Width& width) const {
    bool overflow = false;
    const UpdateTerms terms = TermsOf(spec_, {&push, 1}, 1, &overflow);
    std::vector<Stored> values;
    std::vector<Compute> state;
    for (std::size_t i = 0; i < groups.size() && !overflow; ++i) {
      const std::uint64_t steps = rows_.Copy(groups.key(i), width(i), &values, &state);
      ApplyToRun<Stored>(
          *updater_,
          {values.data(), values.data(), state.data(), state.data(), values.size(), steps + 1},
          groups.rows(i), terms);
    }
    return overflow;
  }

  // The next update of a row.
  StoredRun<Stored> RunOf(const Sought& sought, std::uint64_t width) {
    const Row row = rows_.Update(sought, width);
    return {row.values, row.values, row.state, row.state, width, ++*row.steps};
  }

  TableSpec spec_;
  const StoreContext context_;
  const Updater* updater_;
  Rows<Stored> rows_;
  TableMemoryShare share_;

 private:
  absl::StatusOr<std::uint64_t> Put(const FrozenPiece& piece) {
    LEEWAY_RETURN_IF_ERROR(CheckRoomFor(piece.rows()));
    const Charging charging(this);
    return PutRows(rows_, context_, piece);
  }
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SPARSE_ROW_STORE_H_
