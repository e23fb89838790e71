#include "tests/simulation/sim_handler.h"

#include <algorithm>
#include <cstring>

#include "leeway/shard_handler.h"
#include "proto/messages/layout.h"
#include "runtime/base/status_macros.h"

namespace leeway::simulation {
namespace {

template <class T>
void Put(std::span<const T> values, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class T>
void Take(absl::string_view* bytes, std::span<T> values) {
  std::memcpy(values.data(), bytes->data(), values.size_bytes());
  bytes->remove_prefix(values.size_bytes());
}

using Counts = std::vector<std::int64_t>;

absl::StatusOr<Counts> PushBlock(ShardCall& call, const SimHandlerRequest& request) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<ShardBlock> blocks, call.Blocks(call.table()));
  const auto block = std::ranges::find(blocks, request.keys[0], &ShardBlock::index);
  if (block == blocks.end()) return absl::OutOfRangeError("the block is of another shard");
  Counts before(block->elements), counts(block->elements);
  std::ranges::copy(request.counts, counts.begin());
  LEEWAY_RETURN_IF_ERROR(call.ReadBlock(call.table(), block->index, std::span(before)));
  LEEWAY_RETURN_IF_ERROR(
      call.PushBlock(call.table(), block->index, std::span<const std::int64_t>(counts)));
  before.resize(request.width);
  return before;
}

absl::StatusOr<Counts> PushRagged(ShardCall& call, const SimHandlerRequest& request) {
  std::vector<std::uint32_t> widths;
  Counts found, before;
  LEEWAY_RETURN_IF_ERROR(call.ReadRagged(call.table(), request.keys, &widths, &found));
  auto next = found.begin();
  for (const std::uint32_t width : widths) {
    before.insert(before.end(), next, next + width);
    next += width;
    if (width == 0) before.resize(before.size() + request.width);
  }
  widths.assign(request.keys.size(), request.width);
  LEEWAY_RETURN_IF_ERROR(call.PushRagged(call.table(), request.keys, widths,
                                         std::span<const std::int64_t>(request.counts)));
  return before;
}

absl::StatusOr<Counts> PushCounts(ShardCall& call, const SimHandlerRequest& request) {
  LEEWAY_ASSIGN_OR_RETURN(const TableSpec spec, call.Spec(call.table()));
  if (spec.kind == TableKind::kDense) return PushBlock(call, request);
  if (spec.kind == TableKind::kRagged) return PushRagged(call, request);
  Counts before(request.counts.size());
  LEEWAY_RETURN_IF_ERROR(call.Read(call.table(), request.keys, std::span(before)));
  LEEWAY_RETURN_IF_ERROR(
      call.Push(call.table(), request.keys, std::span<const std::int64_t>(request.counts)));
  return before;
}

absl::StatusOr<std::string> PushAndTell(ShardCall& call) {
  const SimHandlerRequest request = SimHandlerRequest::From(call.request());
  LEEWAY_ASSIGN_OR_RETURN(const Counts before, PushCounts(call, request));
  if (request.fails) return absl::InvalidArgumentError("it was to fail");
  std::string answer;
  Put(std::span<const std::int64_t>(before), &answer);
  return answer;
}

}  // namespace

std::string SimHandlerRequest::ToBytes() const {
  std::string bytes;
  const std::uint32_t numbers[] = {fails, width, static_cast<std::uint32_t>(keys.size())};
  Put(std::span<const std::uint32_t>(numbers), &bytes);
  Put(std::span<const std::uint64_t>(keys), &bytes);
  Put(std::span<const std::int64_t>(counts), &bytes);
  return bytes;
}

SimHandlerRequest SimHandlerRequest::From(absl::string_view bytes) {
  SimHandlerRequest request;
  std::uint32_t numbers[3];
  Take(&bytes, std::span<std::uint32_t>(numbers));
  request.fails = numbers[0] != 0;
  request.width = numbers[1];
  request.keys.resize(numbers[2]);
  Take(&bytes, std::span(request.keys));
  request.counts.resize(bytes.size() / sizeof(std::int64_t));
  Take(&bytes, std::span(request.counts));
  return request;
}

void RegisterSimHandler() { (void)RegisterShardHandler(kSimHandler, PushAndTell); }

bool TakesHandlers(const SimTable& table) {
  return table.counter && !table.converts() && !table.coded && !table.bsp() && !table.collects() &&
         !table.spec.consistency.is_weighted();
}

std::uint64_t InOneShard(const SimTable& table, const worker::TableInfo& info, std::uint64_t places,
                         std::uint32_t place) {
  if (table.dense()) return std::uint64_t{1} << place;
  const std::uint32_t shard = proto::ShardOfKey(table.keys[place], info.num_shards);
  for (std::uint32_t other = 0; other < table.places; ++other) {
    const std::uint64_t bit = std::uint64_t{1} << other;
    if (proto::ShardOfKey(table.keys[other], info.num_shards) != shard) places &= ~bit;
  }
  return places;
}

}  // namespace leeway::simulation
