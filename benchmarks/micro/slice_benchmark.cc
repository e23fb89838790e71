// Micro-benchmarks of a worker's work on a sparse batch before it is sent, and on the answers.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "runtime/base/random.h"
#include "worker/slicing/group_keys.h"
#include "worker/slicing/slice.h"

namespace leeway {
namespace {

constexpr std::uint32_t kShards = 32;
constexpr std::size_t kRows = 100'000;
constexpr std::uint64_t kWidth = 16;

std::vector<std::uint64_t> RandomKeys(bool sorted) {
  runtime::Random random(1);
  std::vector<std::uint64_t> keys(kRows);
  for (std::uint64_t& key : keys) key = random.Below(std::uint64_t{1} << 40);
  if (sorted) std::sort(keys.begin(), keys.end());
  return keys;
}

std::shared_ptr<worker::TableInfo> Table() {
  auto table = std::make_shared<worker::TableInfo>();
  table->id = 1;
  table->spec = TableSpec::Sparse("t", kWidth);
  table->num_shards = kShards;
  return table;
}

void BM_GroupKeys(benchmark::State& state) {
  const std::vector<std::uint64_t> keys = RandomKeys(state.range(0) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(worker::GroupKeys(keys, kShards));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
  state.SetLabel(state.range(0) != 0 ? "sorted" : "in any order");
}
BENCHMARK(BM_GroupKeys)->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

void BM_SliceSparsePush(benchmark::State& state) {
  const std::vector<std::uint64_t> keys = RandomKeys(true);
  const std::vector<float> values(kRows * kWidth, 1e-3f);
  worker::Access access;
  access.table = Table();
  access.kind = TableKind::kSparse;
  access.op = proto::Op::kPush;
  access.keys = keys;
  access.values = values.data();
  access.size = values.size();
  for (auto _ : state) {
    absl::StatusOr<worker::Sliced> sliced = worker::Slice(access, nullptr);
    if (!sliced.ok()) return state.SkipWithError("refused");
    sliced->Fill();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(BM_SliceSparsePush)->Unit(benchmark::kMicrosecond);

void BM_TakeSparsePull(benchmark::State& state) {
  const std::vector<std::uint64_t> keys = RandomKeys(true);
  std::vector<float> result(kRows * kWidth);
  worker::Access access;
  access.table = Table();
  access.kind = TableKind::kSparse;
  access.op = proto::Op::kPull;
  access.keys = keys;
  access.result = result.data();
  access.result_size = result.size();
  absl::StatusOr<worker::Sliced> sliced = worker::Slice(access, nullptr);
  if (!sliced.ok()) return state.SkipWithError("refused");
  std::vector<runtime::Buffer> replies;
  for (const worker::Piece& piece : sliced->pieces) {
    const std::vector<float> rows(piece.reply_elements, 1e-3f);
    replies.push_back(runtime::Buffer::CopyOf(rows.data(), rows.size() * sizeof(float)));
  }
  for (auto _ : state) {
    for (std::size_t i = 0; i < replies.size(); ++i) {
      benchmark::DoNotOptimize(sliced->sink->Take(i, {}, {&replies[i], 1}));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
}
BENCHMARK(BM_TakeSparsePull)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace leeway
