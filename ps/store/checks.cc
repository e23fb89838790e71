#include "ps/store/checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "compress/kernels/kernels.h"
#include "proto/messages/layout.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

bool AllBelongHere(const StoreContext& context, std::span<const std::uint64_t> keys) {
  if (std::has_single_bit(context.num_shards)) {
    return compress::ChosenKernels().all_in_shard(keys.data(), keys.size(), context.num_shards - 1,
                                                  context.shard);
  }
  return std::all_of(keys.begin(), keys.end(),
                     [&](std::uint64_t key) { return BelongsHere(context, key); });
}

using Widths = absl::flat_hash_map<std::uint64_t, std::uint32_t>;

absl::Status CheckAgainst(const Widths& widths, const PushView& push) {
  const auto keys = push.keys.as<std::uint64_t>();
  const auto own = push.widths.as<std::uint32_t>();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = widths.find(keys[i]);
    if (found == widths.end() || found->second == own[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("it has ", own[i], " elements for key ", keys[i],
                                                   ", to which another worker pushed ",
                                                   found->second, " in this clock"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Count(std::uint64_t number, absl::string_view noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

absl::Status CheckRate(const TableSpec& spec, double learning_rate) {
  if (std::isnan(learning_rate)) return absl::OkStatus();
  if (std::isfinite(learning_rate) && learning_rate >= 0) return absl::OkStatus();
  return Invalid(spec, "the push's learning_rate is ", learning_rate,
                 ", but must be finite and not negative");
}

absl::Status CheckKeys(const TableSpec& spec, const StoreContext& context,
                       const runtime::Buffer& keys) {
  if (keys.size() % sizeof(std::uint64_t) != 0) {
    return Invalid(spec, "its keys have 8 bytes each, but ", keys.size(), " bytes were sent");
  }
  const auto all = keys.as<std::uint64_t>();
  if (AllBelongHere(context, all)) return absl::OkStatus();
  const auto wrong = std::find_if_not(all.begin(), all.end(),
                                      [&](std::uint64_t key) { return BelongsHere(context, key); });
  return Invalid(spec, "key ", *wrong, " was sent to shard ", context.shard, " of ",
                 context.num_shards, ", but belongs to shard ",
                 proto::ShardOfKey(*wrong, context.num_shards));
}

absl::Status CheckPullSize(const TableSpec& spec, const StoreContext& context,
                           std::uint64_t bytes) {
  if (bytes <= context.pull_bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("table '", spec.name, "': a pull of ", bytes, " bytes, but a reply holds ",
                   context.pull_bytes_max, " at most; pull fewer keys at a time or raise ",
                   "LEEWAY_MESSAGE_BYTES_MAX"));
}

bool BelongsHere(const StoreContext& context, std::uint64_t key) {
  return proto::ShardOfKey(key, context.num_shards) == context.shard;
}

absl::Status CheckRowsHere(const TableSpec& spec, const StoreContext& context,
                           const Updater& updater, const FrozenPiece& piece) {
  LEEWAY_RETURN_IF_ERROR(CheckPiece(spec, updater, piece));
  const auto keys = piece.keys.as<std::uint64_t>();
  const auto steps = piece.steps.as<std::uint64_t>();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (steps[i] == 0 || BelongsHere(context, keys[i])) continue;
    return Invalid(spec, "a piece with key ", keys[i], " for shard ", context.shard, " of ",
                   context.num_shards, ", but it belongs to shard ",
                   proto::ShardOfKey(keys[i], context.num_shards));
  }
  return absl::OkStatus();
}

double LastRate(std::span<const PushView> pushes) {
  double rate = std::numeric_limits<double>::quiet_NaN();
  for (const PushView& push : pushes) {
    if (!std::isnan(push.learning_rate)) rate = push.learning_rate;
  }
  return rate;
}

double RateOrTables(const TableSpec& spec, double learning_rate) {
  if (!std::isnan(learning_rate)) return learning_rate;
  const auto found = spec.updater.parameters.find("learning_rate");
  return found != spec.updater.parameters.end() ? found->second : learning_rate;
}

UpdateTerms TermsOf(const TableSpec& spec, std::span<const PushView> pushes,
                    std::uint32_t contributors, bool* overflow) {
  UpdateTerms terms{.learning_rate = RateOrTables(spec, LastRate(pushes)), .overflow = overflow};
  if (spec.aggregate == Aggregate::kMean) terms.mean_of = contributors;
  return terms;
}

std::vector<absl::Status> CheckWidthsTogether(const ShardStore& store,
                                              std::span<const PushView> pushes) {
  Widths widths;
  std::vector<absl::Status> all;
  all.reserve(pushes.size());
  for (const PushView& push : pushes) {
    absl::Status fits = store.Check(push);
    if (fits.ok()) fits = CheckAgainst(widths, push);
    all.push_back(fits);
    if (!fits.ok()) continue;
    const auto keys = push.keys.as<std::uint64_t>();
    const auto own = push.widths.as<std::uint32_t>();
    for (std::size_t i = 0; i < keys.size(); ++i) widths.try_emplace(keys[i], own[i]);
  }
  return all;
}

}  // namespace leeway::ps
