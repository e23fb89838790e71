// A cluster of servers of one data thread each, in the simulator, with scripted workers, for tests
// of chains. The test plays the scheduler: it sends maps, and kills servers.
#ifndef LEEWAY_PS_TESTING_CHAIN_BENCH_H_
#define LEEWAY_PS_TESTING_CHAIN_BENCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ps/data/data_thread.h"
#include "ps/testing/chain_worker.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::ps {

// The fixture of chain tests.
struct Mode {
  const char* name;
  Consistency consistency;
};
inline const Mode kModes[] = {
    {"bsp", Consistency::Bsp()}, {"ssp", Consistency::Ssp(1)}, {"asp", Consistency::Asp()}};

class ChainBench {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint32_t servers = 3;
    std::uint32_t workers = 2;
    std::uint32_t shards = 2;
    std::uint32_t replication = 2;
    Config config = DefaultConfig();
    DataOptions data = {};
    std::vector<std::uint64_t> table_bytes_max = {};  // by server; those beyond have no limit
  };
  static constexpr std::uint64_t kCluster = 77;
  static constexpr std::uint64_t kBlock = 16;  // elements
  static constexpr std::uint64_t kBlocks = 4;  // a table
  static Config DefaultConfig();

  explicit ChainBench(const Options& options);
  ~ChainBench();

  // On every server. Tables have kBlocks blocks of floats and the updater "add".
  std::uint32_t Install(const Consistency& consistency);
  std::uint32_t Install(TableSpec spec);

  // The chain of every shard: its members, head first, and those that are joining. Takes
  // effect with Publish.
  void SetChain(std::vector<std::uint32_t> members, std::vector<std::uint32_t> joining = {});
  // Sends all living servers the map, and workers when all servers have taken it.
  void Publish();
  // Everybody has taken the newest map.
  bool Published() const { return published_ == map.version; }
  // Only these servers; workers hear nothing.
  void PublishTo(const std::vector<std::uint32_t>& servers);
  proto::ClusterMap map;
  bool gives_up = false;                        // some server is to; otherwise the test fails
  std::vector<absl::Status> given_up;           // why
  std::uint64_t timeout_ms = 0;                 // of dense requests
  std::vector<proto::LinkReport> link_reports;  // of all servers

  // The server dies, and the map without it is sent: the rest of the chains goes on.
  void Kill(std::uint32_t server);
  // Leaves the dead out of the chains of the map.
  void DropFromChains(std::uint32_t server);

  ChainWorker::Key Push(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                        std::uint64_t block, float value, std::uint64_t read_updates = 0);
  ChainWorker::Key Pull(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                        std::uint64_t block);
  // A call of a shard handler, at block 0.
  ChainWorker::Key Call(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                        const std::string& handler, const std::string& text);
  // Rows of a sparse or ragged table, all of one value; `keys` belong to one shard.
  ChainWorker::Key PushRows(std::uint32_t worker, std::uint32_t table, std::uint64_t clock,
                            const std::vector<std::uint64_t>& keys, std::uint32_t width,
                            float value);
  // The first keys of a shard.
  std::vector<std::uint64_t> KeysOf(std::uint32_t shard, std::size_t count) const;
  ChainWorker& worker(std::uint32_t rank) { return *workers_[rank]; }
  void AddWorker(bool late);
  // Returns its place among the workers; no map knows of it, and it takes the next one published.
  std::uint32_t AddReader();
  void KillWorker(std::uint32_t rank);  // tell it with Publish

  // Runs until `done`, or fails the test.
  void Until(const std::function<bool()>& done, const char* what);
  bool Idle() const;
  void UntilIdle();
  void RunFor(absl::Duration time) { world_.RunFor(time); }
  // The values that the first worker reads at `clock`: the first element of each block.
  std::vector<float> ReadAll(std::uint32_t table, std::uint64_t clock);
  // All members of all chains have the same content and end of log.
  void ExpectReplicasEqual();

  bool alive(std::uint32_t server) const { return servers_[server].thread != nullptr; }
  DataThread& thread(std::uint32_t server) { return *servers_[server].thread; }
  Replica* replica(std::uint32_t server, std::uint32_t shard) {
    return thread(server).FindReplica(shard);
  }
  // The shards of which some server says that its replica has the state.
  std::set<std::uint32_t>& ready() { return ready_; }
  runtime::SimWorld& world() { return world_; }
  van::SimNetwork& network() { return network_; }
  static std::string HostOf(std::uint32_t server) { return "server" + std::to_string(server); }
  static std::string WorkerHostOf(std::uint32_t rank) { return "worker" + std::to_string(rank); }

 private:
  struct Server {
    std::unique_ptr<runtime::Host> host;
    std::unique_ptr<runtime::LoopRunner> runner;
    std::unique_ptr<van::Factory> factory;
    std::unique_ptr<TableMemory> memory;
    std::unique_ptr<DataThread> thread;
    std::uint64_t taken = 0;  // version of the map
  };

  void StartServer(std::uint32_t rank);
  void OnTaken(std::uint32_t rank, std::uint64_t version);
  proto::Request RequestOf(std::uint32_t table, proto::Op op, std::uint64_t clock,
                           std::uint64_t block) const;

  const Options options_;
  runtime::SimWorld world_;
  van::SimNetwork network_{&world_};
  std::vector<Server> servers_;
  std::vector<std::unique_ptr<ChainWorker>> workers_;
  std::vector<TableSpec> tables_;
  std::set<std::uint32_t> ready_;
  std::uint64_t published_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TESTING_CHAIN_BENCH_H_
