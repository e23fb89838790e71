// The checks that all stores make of what a peer has sent, and the terms of an update.
#ifndef LEEWAY_PS_STORE_CHECKS_H_
#define LEEWAY_PS_STORE_CHECKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/store/shard_store.h"
#include "ps/store/update_run.h"

namespace leeway::ps {

// INVALID_ARGUMENT "table 'w': …".
template <class... Args>
absl::Status Invalid(const TableSpec& spec, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("table '", spec.name, "': ", args...));
}

// "3 elements", "1 row": a number and its noun, which takes an s.
std::string Count(std::uint64_t number, absl::string_view noun);

// A push's learning rate is NaN (it has none) or else finite and not negative.
absl::Status CheckRate(const TableSpec& spec, double learning_rate);

// Whole numbers of keys, all of which belong to the shard.
absl::Status CheckKeys(const TableSpec& spec, const StoreContext& context,
                       const runtime::Buffer& keys);

// Whether a row's key belongs to the shard.
bool BelongsHere(const StoreContext& context, std::uint64_t key);

// Whether an aggregate has so many elements, and a rate that a push may have.
template <class Compute>
absl::Status CheckAggregate(const TableSpec& spec, const AggregatedPush& aggregate,
                            std::uint64_t elements) {
  if (aggregate.values.size() != elements * sizeof(Compute)) {
    return Invalid(spec, "an aggregate of ", aggregate.values.size(), " bytes for ",
                   Count(elements, "element"), " of ", sizeof(Compute), " bytes each");
  }
  return CheckRate(spec, aggregate.learning_rate);
}

// CheckPiece, and whether all rows that are there belong to the shard.
absl::Status CheckRowsHere(const TableSpec& spec, const StoreContext& context,
                           const Updater& updater, const FrozenPiece& piece);

// Which pushes of rows can be combined: those that give a row the same width. Of each push, in that
// order, whether it can be combined with those before it that can: OK, or INVALID_ARGUMENT that
// names the row. A row has the width it has in the store, or else the one
// that the first of these pushes gives it. For pushes to a ragged table that the store has checked,
// one by one, before.
std::vector<absl::Status> CheckWidthsTogether(const ShardStore& store,
                                              std::span<const PushView> pushes);

// Whether a pull may gather so much.
absl::Status CheckPullSize(const TableSpec& spec, const StoreContext& context, std::uint64_t bytes);

// The rate of the last push that has one, or else NaN.
double LastRate(std::span<const PushView> pushes);
// A push's own rate, or else the table's, or else NaN.
double RateOrTables(const TableSpec& spec, double learning_rate);
// `overflow`: UpdateTerms::overflow.
UpdateTerms TermsOf(const TableSpec& spec, std::span<const PushView> pushes,
                    std::uint32_t contributors, bool* overflow);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_CHECKS_H_
