// Micro-benchmarks of a push and a pull once they have reached their shard.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "benchmark/benchmark.h"
#include "proto/messages/layout.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"
#include "runtime/base/random.h"

namespace leeway {
namespace {

UpdaterSpec NamedUpdater(int which) {
  static const char* const kNames[] = {"add", "sgd", "adam"};
  UpdaterSpec spec{.name = kNames[which], .parameters = {}};
  if (which > 0) spec.parameters["learning_rate"] = 0.01;
  return spec;
}

void BM_DensePush(benchmark::State& state) {
  TableSpec spec = TableSpec::Dense("t", {1 << 18});
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const std::vector<float> values(1 << 18, 1e-3f);
  ps::PushView push;
  push.values = runtime::Buffer::Unowned(values.data(), values.size() * sizeof(float));
  push.learning_rate = NAN;
  for (auto _ : state) {
    if (!store->Apply(push).ok()) return state.SkipWithError("refused");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(push.values.size()));
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_DensePush)->DenseRange(0, 2);

struct KeyBatch {
  std::vector<std::uint64_t> keys;
  std::vector<float> values;
};

KeyBatch MakeBatch(std::uint64_t seed, std::size_t rows, std::uint64_t width,
                   std::uint64_t below = 1'000'000) {
  runtime::Random random(seed);
  KeyBatch batch;
  for (std::size_t i = 0; i < rows; ++i) batch.keys.push_back(random.Below(below));
  std::sort(batch.keys.begin(), batch.keys.end());
  batch.keys.erase(std::unique(batch.keys.begin(), batch.keys.end()), batch.keys.end());
  batch.values.assign(batch.keys.size() * width, 1e-3f);
  return batch;
}

KeyBatch EveryKey(std::uint64_t rows, std::uint64_t width) {
  KeyBatch batch;
  for (std::uint64_t key = 0; key < rows; ++key) batch.keys.push_back(key);
  batch.values.assign(rows * width, 1e-3f);
  return batch;
}

ps::PushView PushOf(const KeyBatch& batch) {
  return {.keys = runtime::Buffer::Unowned(batch.keys.data(), batch.keys.size() * 8),
          .values = runtime::Buffer::Unowned(batch.values.data(), batch.values.size() * 4)};
}

void BM_SparsePush(benchmark::State& state) {
  TableSpec spec = TableSpec::Sparse("t", 16);
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch batch = MakeBatch(1, 10'000, 16);
  const ps::PushView push = PushOf(batch);
  for (auto _ : state) {
    if (!store->Apply(push).ok()) return state.SkipWithError("refused");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch.keys.size()));
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_SparsePush)->DenseRange(0, 2);

// Rows that lie scattered over a shard of a million.
void BM_SparsePushScattered(benchmark::State& state) {
  TableSpec spec = TableSpec::Sparse("t", 16);
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch all = EveryKey(1'000'000, 16);
  if (!store->Apply(PushOf(all)).ok()) return state.SkipWithError("refused");
  const KeyBatch batch = MakeBatch(1, 100'000, 16);
  for (auto _ : state) {
    if (!store->Apply(PushOf(batch)).ok()) return state.SkipWithError("refused");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch.keys.size()));
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_SparsePushScattered)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

// The same while a snapshot exists, all of whose rows have to stay unchanged.
void BM_SparsePushScatteredFrozen(benchmark::State& state) {
  TableSpec spec = TableSpec::Sparse("t", 16);
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch all = EveryKey(1'000'000, 16);
  if (!store->Apply(PushOf(all)).ok()) return state.SkipWithError("refused");
  std::uint64_t seed = 0;
  ps::StoreSnapshot snapshot;
  double longest = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const KeyBatch batch = MakeBatch(++seed, 100'000, 16);
    snapshot = store->Freeze();
    state.ResumeTiming();
    const auto begin = std::chrono::steady_clock::now();
    if (!store->Apply(PushOf(batch)).ok()) return state.SkipWithError("refused");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    longest = std::max(longest, took.count());
  }
  state.counters["longest_ms"] = longest;
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_SparsePushScatteredFrozen)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

// A dense block of 1 MiB that a snapshot shares.
void BM_DensePushFrozen(benchmark::State& state) {
  TableSpec spec = TableSpec::Dense("t", {1 << 18});
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const std::vector<float> values(1 << 18, 1e-3f);
  ps::PushView push;
  push.values = runtime::Buffer::Unowned(values.data(), values.size() * sizeof(float));
  for (auto _ : state) {
    const ps::StoreSnapshot snapshot = store->Freeze();
    if (!store->Apply(push).ok()) return state.SkipWithError("refused");
  }
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_DensePushFrozen)->DenseRange(0, 2);

// 1 GiB of values and Adam's state.
void BM_FreezeDense(benchmark::State& state) {
  TableSpec spec = TableSpec::Dense("t", {(1ull << 30) / 12});
  spec.updater = NamedUpdater(2);
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const std::vector<float> values(1 << 18, 1e-3f);
  for (std::uint64_t block = 0; block < spec.NumElements() / values.size(); ++block) {
    ps::PushView push;
    push.block = block;
    push.values = runtime::Buffer::Unowned(values.data(), values.size() * sizeof(float));
    if (!store->Apply(push).ok()) return state.SkipWithError("refused");
  }
  for (auto _ : state) benchmark::DoNotOptimize(store->Freeze());
  state.counters["pieces"] = static_cast<double>(store->Freeze().pieces.size());
}
BENCHMARK(BM_FreezeDense)->Unit(benchmark::kMicrosecond);

void BM_FreezeSparse(benchmark::State& state) {
  TableSpec spec = TableSpec::Sparse("t", 16);
  spec.updater = NamedUpdater(2);
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch all = EveryKey((1ull << 30) / 192, 16);
  if (!store->Apply(PushOf(all)).ok()) return state.SkipWithError("refused");
  for (auto _ : state) benchmark::DoNotOptimize(store->Freeze());
  state.counters["pieces"] = static_cast<double>(store->Freeze().pieces.size());
}
BENCHMARK(BM_FreezeSparse)->Unit(benchmark::kMicrosecond);

void BM_SparsePull(benchmark::State& state) {
  TableSpec spec = TableSpec::Sparse("t", 16);
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch all = EveryKey(1'000'000, 16);
  if (!store->Apply(PushOf(all)).ok()) return state.SkipWithError("refused");
  const KeyBatch batch = MakeBatch(1, 10'000, 16);
  const ps::PullView pull{.keys = PushOf(batch).keys};
  for (auto _ : state) benchmark::DoNotOptimize(store->Pull(pull));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch.keys.size()));
}
BENCHMARK(BM_SparsePull);

// A shard of ten million rows of 16 floats, made once: it takes seconds and a gigabyte.
class TenMillionRows {
 public:
  static const TenMillionRows& Get() {
    static const TenMillionRows rows;
    return rows;
  }

  ps::ShardStore* store() const { return store_.get(); }
  // Random existing keys, all different, ascending as workers send them.
  const KeyBatch& batch(std::uint64_t i) const { return batches_[i % batches_.size()]; }

  void Report(benchmark::State& state) const {
    const ps::StoreStats stats = store_->stats();
    const auto rows = static_cast<double>(stats.rows);
    state.counters["bytes_a_row"] = static_cast<double>(stats.memory_bytes) / rows;
    state.counters["vs_payload_and_key"] = static_cast<double>(stats.memory_bytes) /
                                           (static_cast<double>(stats.value_bytes) + 8 * rows);
    state.counters["longest_push_of_new_ms"] = longest_ms_;
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch(0).keys.size()));
  }

 private:
  static constexpr std::uint64_t kRows = 10'000'000;
  static constexpr std::uint64_t kStep = 100'000;

  TenMillionRows()
      : updater_(*ps::MakeUpdater(Spec())),
        store_(ps::NewShardStore(Spec(), {.table = 1}, updater_.get())) {
    const std::vector<float> values(kStep * 16, 1e-3f);
    std::vector<std::uint64_t> keys(kStep);
    for (std::uint64_t begin = 0; begin < kRows; begin += kStep) {
      std::iota(keys.begin(), keys.end(), begin);
      const auto start = std::chrono::steady_clock::now();
      ps::PushView push{.keys = runtime::Buffer::Unowned(keys.data(), kStep * 8),
                        .values = runtime::Buffer::Unowned(values.data(), kStep * 64)};
      store_->Apply(push).IgnoreError();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      longest_ms_ = std::max(longest_ms_, took.count());
    }
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      batches_.push_back(MakeBatch(seed, kStep, 16, kRows));
    }
  }

  static TableSpec Spec() { return TableSpec::Sparse("t", 16); }

  const std::unique_ptr<Updater> updater_;
  const std::unique_ptr<ps::ShardStore> store_;
  std::vector<KeyBatch> batches_;
  double longest_ms_ = 0;
};

void BM_SparsePushTenMillion(benchmark::State& state) {
  const TenMillionRows& rows = TenMillionRows::Get();
  std::uint64_t i = 0;
  for (auto _ : state) {
    if (!rows.store()->Apply(PushOf(rows.batch(i++))).ok()) return state.SkipWithError("refused");
  }
  rows.Report(state);
}
BENCHMARK(BM_SparsePushTenMillion)->Unit(benchmark::kMillisecond);

void BM_SparsePullTenMillion(benchmark::State& state) {
  const TenMillionRows& rows = TenMillionRows::Get();
  std::uint64_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(rows.store()->Pull({.keys = PushOf(rows.batch(i++)).keys}));
  }
  rows.Report(state);
}
BENCHMARK(BM_SparsePullTenMillion)->Unit(benchmark::kMillisecond);

// A data thread's work on a worker's batch: rows of a table in 32 shards; the rows of each batch
// were created together.
class ManyShards {
 public:
  static const ManyShards& Get() {
    static const ManyShards shards;
    return shards;
  }

  ps::ShardStore* store(std::size_t shard) const { return stores_[shard].get(); }
  const std::vector<KeyBatch>& batch(std::uint64_t i) const { return batches_[i % kBatches]; }
  void Report(benchmark::State& state) const {
    std::size_t rows = 0;
    for (const KeyBatch& part : batch(0)) rows += part.keys.size();
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows));
  }

 private:
  static constexpr std::uint32_t kShards = 32;
  static constexpr std::uint64_t kBatches = 8;

  ManyShards() : updater_(*ps::MakeUpdater(Spec())) {
    for (std::uint32_t i = 0; i < kShards; ++i) {
      const ps::StoreContext context{.table = 1, .shard = i, .num_shards = kShards};
      stores_.push_back(ps::NewShardStore(Spec(), context, updater_.get()));
    }
    for (std::uint64_t seed = 1; seed <= kBatches; ++seed) {
      std::vector<KeyBatch>& parts = batches_.emplace_back(kShards);
      for (const std::uint64_t key : MakeBatch(seed, 100'000, 0, 10'000'000).keys) {
        parts[proto::ShardOfKey(key, kShards)].keys.push_back(key);
      }
      for (std::uint32_t i = 0; i < kShards; ++i) {
        parts[i].values.assign(parts[i].keys.size() * 16, 1e-3f);
        stores_[i]->Apply(PushOf(parts[i])).IgnoreError();
      }
    }
  }

  static TableSpec Spec() { return TableSpec::Sparse("t", 16); }

  const std::unique_ptr<Updater> updater_;
  std::vector<std::unique_ptr<ps::ShardStore>> stores_;
  std::vector<std::vector<KeyBatch>> batches_;  // by shard
};

void BM_SparsePushManyShards(benchmark::State& state) {
  const ManyShards& shards = ManyShards::Get();
  std::uint64_t i = 0;
  for (auto _ : state) {
    const std::vector<KeyBatch>& batch = shards.batch(i++);
    for (std::size_t shard = 0; shard < batch.size(); ++shard) {
      if (!shards.store(shard)->Apply(PushOf(batch[shard])).ok()) {
        return state.SkipWithError("refused");
      }
    }
  }
  shards.Report(state);
}
BENCHMARK(BM_SparsePushManyShards)->Unit(benchmark::kMillisecond);

void BM_SparsePullManyShards(benchmark::State& state) {
  const ManyShards& shards = ManyShards::Get();
  std::uint64_t i = 0;
  for (auto _ : state) {
    const std::vector<KeyBatch>& batch = shards.batch(i++);
    for (std::size_t shard = 0; shard < batch.size(); ++shard) {
      benchmark::DoNotOptimize(shards.store(shard)->Pull({.keys = PushOf(batch[shard]).keys}));
    }
  }
  shards.Report(state);
}
BENCHMARK(BM_SparsePullManyShards)->Unit(benchmark::kMillisecond);

void BM_RaggedPush(benchmark::State& state) {
  TableSpec spec = TableSpec::Ragged("t");
  spec.updater = NamedUpdater(static_cast<int>(state.range(0)));
  const auto updater = ps::MakeUpdater(spec);
  const auto store = ps::NewShardStore(spec, {.table = 1}, updater->get());
  const KeyBatch batch = MakeBatch(1, 10'000, 16);
  const std::vector<std::uint32_t> widths(batch.keys.size(), 16);
  ps::PushView push = PushOf(batch);
  push.widths = runtime::Buffer::Unowned(widths.data(), widths.size() * 4);
  for (auto _ : state) {
    if (!store->Apply(push).ok()) return state.SkipWithError("refused");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch.keys.size()));
  state.SetLabel(spec.updater.name);
}
BENCHMARK(BM_RaggedPush)->DenseRange(0, 2);

}  // namespace
}  // namespace leeway
