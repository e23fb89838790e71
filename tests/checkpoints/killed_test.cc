// Kills clusters at any moment while they save checkpoints, and starts them again from the disk:
// each finished checkpoint is whole and right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "ps/checkpoint/export.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"
#include "tests/checkpoints/plain_reader.h"
#include "tests/simulation/sim_cluster.h"
#include "worker/slicing/slice.h"

namespace leeway::simulation {
namespace {

constexpr char kShared[] = "/shared";
constexpr char kSaved[] = "/shared/saved";
constexpr std::uint32_t kWorkers = 2;
constexpr std::uint64_t kElements = 700;  // two blocks
constexpr std::uint64_t kKeys = 20;

// The number that each worker adds to the place in its iteration `clock`.
std::int64_t Added(std::uint64_t clock, std::uint64_t place) {
  return static_cast<std::int64_t>(clock * (place % 7 + 1) + place + 1);
}

// The value of the place when all workers have ended the clocks below.
std::int64_t At(std::uint64_t clock, std::uint64_t place) {
  std::int64_t sum = 0;
  for (std::uint64_t c = 0; c < clock; ++c) sum += kWorkers * Added(c, place);
  return sum;
}

// A worker that pushes to all places of two tables, iteration after iteration.
class Pusher {
 public:
  Pusher(SimCluster* cluster, std::uint32_t rank) : cluster_(cluster), rank_(rank) {
    for (std::uint64_t key = 0; key < kKeys; ++key) keys_.push_back(key * 977 + 5);
  }

  void Start() {
    core_ = cluster_->Start(Role::kWorker, rank_)->core();
    core_->Start([this](const absl::Status& ready) {
      if (!ready.ok()) return;
      Create(0);
    });
  }
  std::uint64_t clock() const { return core_->clock(); }
  std::uint64_t begin() const { return begin_; }

 private:
  static TableSpec SpecOf(int table) {
    TableSpec spec = table == 0 ? TableSpec::Dense("dense", {kElements}, DType::kInt64)
                                : TableSpec::Sparse("sparse", 1, DType::kInt64);
    spec.updater.name = "add";
    spec.consistency = table == 0 ? Consistency::Bsp() : Consistency::Ssp(1);
    return spec;
  }

  void Create(int table) {
    core_->CreateTable(SpecOf(table), absl::Minutes(1), [this, table](auto info) {
      if (!info.ok()) return;
      infos_[table] = *info;
      if (table == 0) return Create(1);
      begin_ = core_->clock();
      Iterate();
    });
  }

  void Iterate() {
    if (!core_->Usable().ok()) return;
    under_way_ = 2;
    for (const int table : {0, 1}) {
      const std::uint64_t size = table == 0 ? kElements : kKeys;
      values_[table].clear();
      for (std::uint64_t i = 0; i < size; ++i) values_[table].push_back(Added(core_->clock(), i));
      worker::Access access;
      access.table = infos_[table];
      access.kind = SpecOf(table).kind;
      access.dtype = DType::kInt64;
      if (table == 1) access.keys = keys_;
      access.values = values_[table].data();
      access.size = size;
      core_->Submit(worker::Slice(access, core_->poster()), {},
                    [this](const auto& operation) { Pushed(operation->result); });
    }
  }
  void Pushed(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    if (--under_way_ > 0 || !status.ok()) return;
    EXPECT_TRUE(core_->Clock().ok());
    cluster_->world().Schedule(absl::Milliseconds(10), [this, life = std::weak_ptr(life_)] {
      if (!life.expired()) Iterate();
    });
  }

  SimCluster* const cluster_;
  const std::uint32_t rank_;
  worker::Core* core_ = nullptr;
  std::vector<std::uint64_t> keys_;
  std::shared_ptr<const worker::TableInfo> infos_[2];
  std::vector<std::int64_t> values_[2];
  int under_way_ = 0;
  std::uint64_t begin_ = ~0ull;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

class Cluster {
 public:
  Cluster(std::uint64_t seed, std::uint32_t servers, const std::string& restore)
      : sim_(SetupOf(seed, servers, restore)) {
    sim_.world().ShareFolder(kShared);
    EXPECT_TRUE(disk()->CreateDirectories(kSaved).ok());
  }

  void Start() {
    sim_.Start(Role::kScheduler);
    for (std::uint32_t i = 0; i < sim_.config().num_servers; ++i) sim_.Start(Role::kServer, i);
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<Pusher>(&sim_, i));
      workers_.back()->Start();
    }
  }
  void KillAll() {
    workers_.clear();
    for (const std::string& host : sim_.HostNames()) sim_.Kill(host);
    disk()->Crash();
  }
  SimCluster& sim() { return sim_; }
  runtime::SimFileSystem* disk() { return sim_.world().files(kShared); }
  const std::vector<std::unique_ptr<Pusher>>& workers() const { return workers_; }

 private:
  static SimCluster::Setup SetupOf(std::uint64_t seed, std::uint32_t servers,
                                   const std::string& restore) {
    SimCluster::Setup setup{.seed = seed, .config = {}, .data_options = {}};
    setup.config.num_servers = servers;
    setup.config.num_workers = kWorkers;
    setup.config.num_shards = 6;
    setup.config.block_bytes = 4096;
    setup.config.replication = 2;
    setup.config.resend_interval = absl::Milliseconds(200);
    setup.config.checkpoint_dir = kSaved;
    setup.config.checkpoint_every_s = 1;
    setup.config.checkpoint_full_every = 3;
    setup.config.checkpoint_keep = 2;
    setup.config.restore = restore;
    return setup;
  }

  SimCluster sim_;
  std::vector<std::unique_ptr<Pusher>> workers_;
};

void ExpectRight(runtime::FileSystem* files, const checkpoint::Manifest& manifest) {
  const auto no_progress = [](std::uint64_t, std::uint64_t) {};
  const std::string path = checkpoint::JoinPath(kSaved, manifest.name);
  const auto verified = ps::VerifyCheckpoint(files, path, no_progress);
  ASSERT_TRUE(verified.ok()) << verified.status();
  ASSERT_TRUE(ps::Export(files, path, "/shared/model", no_progress).ok());
  const tests::PlainFile model = tests::ReadPlainly(*files->Read("/shared/model"));
  const auto dense = model.tensors.at("dense").As<std::int64_t>();
  const auto sparse = model.tensors.at("sparse.values").As<std::int64_t>();
  ASSERT_EQ(dense.size(), kElements);
  for (const std::uint64_t i : {std::uint64_t{0}, std::uint64_t{400}, kElements - 1}) {
    EXPECT_EQ(dense[i], At(manifest.clock, i)) << manifest.name << " at clock " << manifest.clock;
  }
  ASSERT_EQ(sparse.size(), manifest.clock == 0 ? 0 : kKeys);
  for (std::uint64_t i = 0; i < sparse.size(); ++i) {
    EXPECT_EQ(sparse[i], At(manifest.clock, i)) << manifest.name << " at clock " << manifest.clock;
  }
}

// The clocks of all finished checkpoints, which have to be right; the newest one's comes last.
std::vector<std::uint64_t> ClocksSaved(runtime::FileSystem* files) {
  std::vector<std::uint64_t> clocks;
  const std::vector<checkpoint::Found> all = *checkpoint::ListCheckpoints(files, kSaved);
  for (const checkpoint::Found& found : all) {
    if (absl::IsNotFound(found.manifest.status())) continue;
    EXPECT_TRUE(found.manifest.ok()) << found.manifest.status();
    if (!found.manifest.ok()) continue;
    ExpectRight(files, *found.manifest);
    clocks.push_back(found.manifest->clock);
  }
  return clocks;
}

std::set<std::string> WithManifest(runtime::FileSystem* files) {
  const std::vector<std::string> names = *files->List(kSaved);
  std::set<std::string> with;
  for (const std::string& name : names) {
    if (files->Exists(absl::StrCat(kSaved, "/", name, "/manifest.json"))) with.insert(name);
  }
  return with;
}

bool HasMore(runtime::FileSystem* files, const std::set<std::string>& before) {
  const std::set<std::string> now = WithManifest(files);
  return !std::includes(before.begin(), before.end(), now.begin(), now.end());
}

void Copy(runtime::FileSystem* from, runtime::FileSystem* to, const std::string& path) {
  const auto contents = from->Read(path);
  if (contents.ok()) {
    ASSERT_TRUE(runtime::WriteFileAtomically(to, path, *contents).ok());
    return;
  }
  ASSERT_TRUE(to->CreateDirectories(path).ok());
  const std::vector<std::string> names = *from->List(path);
  for (const std::string& name : names) {
    Copy(from, to, checkpoint::JoinPath(path, name));
  }
}

constexpr std::uint64_t kMoments = runtime::kSanitized ? 20 : 100;

TEST(KilledTest, AtManyMoments) {
  std::uint64_t saved = 0, incremental = 0, unfinished = 0;
  for (std::uint64_t seed = 1; seed <= kMoments; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Cluster cluster(seed, 2, "");
    cluster.disk()->SetFaults({.error_probability = seed % 4 == 0 ? 0.01 : 0, .torn_writes = true});
    cluster.Start();
    cluster.sim().world().RunFor(absl::Milliseconds(500) +
                                 cluster.sim().world().Uniform() * absl::Seconds(6));
    // Some are killed while they write.
    if (seed % 2 == 0) {
      const std::uint64_t before = cluster.disk()->bytes_used();
      (void)cluster.sim().RunUntil([&] { return cluster.disk()->bytes_used() > before; },
                                   absl::Seconds(3));
      for (std::uint64_t step = cluster.sim().world().Random() % 30; step > 0; --step) {
        cluster.sim().world().Step();
      }
    }
    // Others as soon as there is one more checkpoint, which then has to be whole.
    if (seed % 4 == 1) {
      const std::set<std::string> before = WithManifest(cluster.disk());
      (void)cluster.sim().RunUntil([&] { return HasMore(cluster.disk(), before); },
                                   absl::Seconds(3));
    }
    cluster.KillAll();
    cluster.disk()->SetFaults({});
    const std::vector<std::uint64_t> clocks = ClocksSaved(cluster.disk());
    saved += clocks.size();
    const std::vector<checkpoint::Found> all = *checkpoint::ListCheckpoints(cluster.disk(), kSaved);
    for (const checkpoint::Found& found : all) {
      unfinished += found.manifest.ok() ? 0 : 1;
      incremental += found.manifest.ok() && found.manifest->base.has_value() ? 1 : 0;
    }
    if (clocks.empty() || seed % 5 != 0) continue;

    Cluster next(seed + 1000, 3, kSaved);
    Copy(cluster.disk(), next.disk(), kSaved);
    next.Start();
    const auto further = [&](std::uint64_t clock) {
      for (const auto& worker : next.workers()) {
        if (worker->begin() == ~0ull || worker->clock() < clock) return false;
      }
      return true;
    };
    ASSERT_TRUE(
        next.sim().RunUntil([&] { return further(clocks.back() + 150); }, absl::Minutes(2)));
    EXPECT_EQ(next.workers()[0]->begin(), clocks.back());
    next.KillAll();
    const std::vector<std::uint64_t> more = ClocksSaved(next.disk());
    ASSERT_FALSE(more.empty());
    EXPECT_GT(more.back(), clocks.back());
  }
  EXPECT_GT(saved, kMoments / 2);
  EXPECT_GT(incremental, kMoments / 10);
  EXPECT_GT(unfinished, kMoments / 10);
}

TEST(KilledTest, AServerThatDiesMeanwhileCostsAnAttemptAtMost) {
  for (std::uint64_t seed = 1; seed <= (runtime::kSanitized ? 1 : 3); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Cluster cluster(seed, 3, "");
    cluster.Start();
    cluster.sim().world().RunFor(absl::Milliseconds(500));
    ASSERT_TRUE(cluster.sim().RunUntil([&] { return cluster.disk()->bytes_used() > 0; },
                                       absl::Seconds(30)));
    for (std::uint64_t step = seed * 7; step > 0; --step) cluster.sim().world().Step();
    cluster.sim().Kill(SimCluster::HostName(Role::kServer, seed % 3));
    EXPECT_TRUE(cluster.sim().RunUntil(
        [&] {
          if (WithManifest(cluster.disk()).size() < 2) return false;
          const auto found = checkpoint::ListCheckpoints(cluster.disk(), kSaved);
          return std::count_if(found->begin(), found->end(),
                               [](const auto& one) { return one.manifest.ok(); }) >= 2;
        },
        absl::Minutes(2)));
    cluster.KillAll();
    EXPECT_GE(ClocksSaved(cluster.disk()).size(), 2u);
  }
}

}  // namespace
}  // namespace leeway::simulation
