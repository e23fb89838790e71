#include "ps/store/factory/collected_pushes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ps/store/checks.h"
#include "ps/store/elements.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/updaters/builtin.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// The bytes of a block of sums with as many elements as a block of that table.
std::uint64_t BlockBytesOfSums(DType dtype, std::uint64_t block_bytes) {
  return block_bytes / SizeOf(dtype) * SizeOf(ComputeDType(dtype));
}

StoreContext ContextOfSums(const TableSpec& spec, const StoreContext& context) {
  StoreContext sums = context;
  sums.block_bytes = BlockBytesOfSums(spec.dtype, context.block_bytes);
  return sums;
}

runtime::Buffer Scaled(const runtime::Buffer& values, DType dtype, double factor) {
  if (factor == 1) return values;
  std::byte* data = nullptr;
  runtime::Buffer scaled = runtime::Buffer::Allocate(values.size(), &data);
  VisitStored(dtype, [&]<class T>(T*) {
    if constexpr (!kIsHalf<T>) {
      const auto by = static_cast<T>(factor);
      std::ranges::transform(values.as<T>(), reinterpret_cast<T*>(data),
                             [by](T value) { return value * by; });
    }
  });
  return scaled;
}

}  // namespace

absl::StatusOr<AggregatedPush> Weighted(const ShardStore& store, DType dtype, const PushView& push,
                                        double weight) {
  LEEWAY_ASSIGN_OR_RETURN(AggregatedPush weighted, store.Combine({&push, 1}, 1));
  weighted.values = Scaled(weighted.values, ComputeDType(dtype), weight);
  return weighted;
}

absl::Status ApplyWeighted(ShardStore* store, DType dtype, const PushView& push, double weight,
                           bool* nonfinite) {
  if (weight == 1) return nonfinite == nullptr ? store->Apply(push) : store->Apply(push, nonfinite);
  LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush weighted, Weighted(*store, dtype, push, weight));
  return store->ApplyAggregate(weighted);
}

CollectedPushes::CollectedPushes(const TableSpec& spec, const StoreContext& context)
    : dtype_(spec.dtype),
      spec_(SpecOfSums(spec)),
      context_(ContextOfSums(spec, context)),
      adds_(std::move(MakeAdd({}).value())) {}

CollectedPushes::~CollectedPushes() = default;

CollectedPushes::Sum& CollectedPushes::SumOf(std::uint64_t block) {
  Sum& sum = sums_[block];
  if (sum.store == nullptr) sum.store = NewShardStore(spec_, context_, adds_.get());
  return sum;
}

absl::Status CollectedPushes::Add(const AggregatedPush& push) {
  const bool of_no_rows = spec_.kind != TableKind::kDense && push.keys.empty();
  if (of_no_rows) return absl::OkStatus();
  Sum& sum = SumOf(push.block);
  LEEWAY_RETURN_IF_ERROR(
      sum.store->Apply(PushView{.block = push.block, .keys = push.keys, .values = push.values}));
  overflowed_ = sum.store->TakeOverflow() || overflowed_;
  if (sum.count != std::numeric_limits<std::uint32_t>::max()) ++sum.count;
  if (!std::isnan(push.learning_rate)) sum.learning_rate = push.learning_rate;
  return absl::OkStatus();
}

absl::Status CollectedPushes::CheckMemory(const AggregatedPush& push) const {
  const auto found = sums_.find(push.block);
  const PushView view{.block = push.block, .keys = push.keys, .values = push.values};
  if (found != sums_.end()) return found->second.store->CheckMemory(view);
  return NewShardStore(spec_, context_, adds_.get())->CheckMemory(view);
}

std::uint32_t CollectedPushes::count(std::uint64_t block) const {
  const auto found = sums_.find(block);
  return found == sums_.end() ? 0 : found->second.count;
}

std::vector<std::uint64_t> CollectedPushes::blocks() const {
  std::vector<std::uint64_t> all;
  for (const auto& [block, sum] : sums_) {
    if (sum.count > 0) all.push_back(block);
  }
  return all;
}

AggregatedPush CollectedPushes::Take(std::uint64_t block, std::uint32_t mean_of) {
  const auto sum = sums_.extract(block);
  const std::vector<FrozenPiece> pieces = sum.mapped().store->Freeze().pieces;
  const double factor = 1.0 / mean_of;
  AggregatedPush taken{.block = block, .learning_rate = sum.mapped().learning_rate};
  if (spec_.kind == TableKind::kDense) {
    taken.values = Scaled(pieces.front().values, spec_.dtype, factor);
    return taken;
  }
  std::vector<std::uint64_t> keys;
  std::vector<std::byte> values;
  for (const FrozenPiece& piece : pieces) {
    ForEachRow(piece, [&](const FrozenRow& row) {
      keys.push_back(row.key);
      values.insert(values.end(), row.values.begin(), row.values.end());
    });
  }
  taken.keys = runtime::Buffer::CopyOf(keys.data(), keys.size() * sizeof(std::uint64_t));
  taken.values = Scaled(runtime::Buffer::CopyOf(values.data(), values.size()), spec_.dtype, factor);
  return taken;
}

std::vector<FrozenPiece> CollectedPushes::Freeze() const {
  std::vector<FrozenPiece> pieces;
  for (const auto& [block, sum] : sums_) {
    for (FrozenPiece& piece : sum.store->Freeze().pieces) {
      piece.collected = sum.count;
      piece.learning_rate = sum.learning_rate;
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

absl::Status CollectedPushes::Load(const FrozenPiece& piece) {
  if (piece.state_slots != 0) return Invalid(spec_, "collected pushes have no state");
  LEEWAY_RETURN_IF_ERROR(CheckPiece(spec_, *adds_, piece));
  Sum& sum = SumOf(piece.block);
  LEEWAY_RETURN_IF_ERROR(sum.store->Load(piece));
  sum.count = piece.collected;
  sum.learning_rate = piece.learning_rate;
  return absl::OkStatus();
}

absl::StatusOr<bool> CollectedPushes::LoadElsewhere(const FrozenPiece& piece,
                                                    std::uint64_t block_bytes) {
  LEEWAY_RETURN_IF_ERROR(CheckPiece(spec_, *adds_, piece));
  const bool fresh = !sums_.contains(piece.block);
  Sum& sum = SumOf(piece.block);
  absl::StatusOr<std::uint64_t> rows =
      sum.store->LoadElsewhere(piece, BlockBytesOfSums(dtype_, block_bytes));
  if (rows.ok() && *rows != 0) {
    // Of several shards of a checkpoint the one with most pushes: how many there were of the rows
    // that belong here is not known.
    sum.count = std::max(sum.count, piece.collected);
    if (!std::isnan(piece.learning_rate)) sum.learning_rate = piece.learning_rate;
  } else if (fresh) {
    sums_.erase(piece.block);
  }
  LEEWAY_RETURN_IF_ERROR(rows.status());
  return *rows != 0;
}

}  // namespace leeway::ps
