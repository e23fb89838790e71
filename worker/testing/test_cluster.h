// A cluster for tests of a worker's core: scripted scheduler and servers that speak the protocol
// over the simulated network and do what a test tells them to.
#ifndef LEEWAY_WORKER_TESTING_TEST_CLUSTER_H_
#define LEEWAY_WORKER_TESTING_TEST_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "leeway/table_spec.h"
#include "proto/messages/messages.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"
#include "van/van.h"
#include "worker/core/core.h"

namespace leeway::worker {

inline constexpr std::uint64_t kTestCluster = 99;

inline Core::Terms Within(absl::Duration timeout) { return {.timeout = timeout}; }

// Answers joins, heartbeats, tables, barriers and leaving.
class ScriptedScheduler final : public van::Handler {
 public:
  ScriptedScheduler(runtime::Loop* loop, van::Factory* factory, const proto::Welcome& welcome,
                    const std::string& address = "sim://scheduler/main");

  // Sends the map as it stands to all members that have joined.
  void Publish();
  void Tell(const proto::AnyMessage& message);

  // As if another worker had created it.
  void AddTable(const TableSpec& spec);

  proto::ClusterMap map;
  std::vector<proto::TableSettings> settings;  // in the answers about each table
  bool release_barriers = true;
  bool answer_tables = true;
  Updater::Combine combine = Updater::Combine::kSum;
  std::vector<proto::BarrierEnter> barriers;
  int joins = 0;
  int beats = 0;
  int table_requests = 0;
  bool left = false;
  std::vector<proto::Admin> admins;
  bool answer_admins = true;
  std::string admin_text = "{}";   // the answer to them
  std::string status_text = "{}";  // and to StatusRequest

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity&) override { van_->Admit(peer); }
  void OnPeerDown(van::PeerId peer, const absl::Status&) override { std::erase(joined_, peer); }
  void OnMessage(van::PeerId peer, van::Message message) override;
  void Send(van::PeerId peer, const proto::AnyMessage& message, absl::string_view text = "");
  proto::TableReply ReplyTo(std::uint64_t request, const std::string& name);

  const proto::Welcome welcome_;
  std::vector<van::PeerId> joined_;
  std::map<std::string, std::pair<std::uint32_t, TableSpec>> tables_;
  std::unique_ptr<van::Van> van_;
};

// A scripted data thread: admits each shard's requests in order, adds what is pushed, and answers
// duplicates again.
class ScriptedServer final : public van::Handler {
 public:
  struct Seen {
    proto::Request request;
    std::vector<std::vector<std::byte>> payload;
  };

  ScriptedServer(runtime::Loop* loop, van::Factory* factory, const van::Identity& identity,
                 const std::string& address);

  // Called with every request as it arrives; true: the server ignores it.
  std::function<bool(const proto::Request&)> intercept;
  // May change a reply to a request that is admitted.
  std::function<void(const proto::Request&, proto::Reply*)> edit;
  std::function<bool(const proto::ClockTick&)> drop_tick;
  std::function<absl::StatusOr<std::string>(const std::string& request)> handler;
  std::function<bool(const proto::Request&)> mute;  // true: applies the request without an answer
  bool provisional = false;                         // holds pushes to BSP tables until Close
  bool silent_stable = false;                       // reports stable clocks only in answers
  std::optional<std::uint64_t> enter_at;            // lets late workers in at that clock

  void Reply(const proto::Request& request, const absl::Status& result);
  // Makes a new van under the same address; keeps what was admitted.
  void Restart();
  // Closes the clocks below `clock`: adds the pushes that are held of them.
  void Close(std::uint64_t clock);
  // Closes the clocks that the newest tick ends, once all pushes that it names are there.
  void CloseUpToTick();
  // Forgets the held pushes that it has accepted.
  void ForgetHeld();
  // Becomes the head of the shard, with what the old head had on all replicas.
  void TakeOver(const ScriptedServer& old, std::uint32_t shard);
  void Say(const proto::AnyMessage& message);

  std::vector<Seen> arrived;              // everything, resends included
  std::vector<proto::PushBatch> batches;  // that had some of it
  std::vector<Seen> admitted;             // each once, in order
  std::vector<proto::ClockTick> ticks;
  std::vector<proto::EnterClock> enters;
  std::map<std::uint64_t, std::vector<float>> blocks;  // dense, by block
  std::map<std::uint64_t, std::vector<float>> rows;    // by key
  std::uint64_t row_width = 2;
  std::map<std::uint32_t, bool> bsp;  // by table; as in the catalogue

 private:
  // A shard and a class (held: of BSP tables).
  using Key = std::pair<std::uint32_t, bool>;
  struct Admission {
    std::uint64_t admitted = 0;
    std::uint64_t committed = 0;  // pushes up to here are on all replicas
    std::map<std::uint64_t, Seen> early;
    std::vector<Seen> held;
  };
  void OnPeerUp(van::PeerId peer, const van::Identity&) override {
    peer_ = peer;
    van_->Admit(peer);
  }
  void OnPeerDown(van::PeerId, const absl::Status&) override {}
  void OnMessage(van::PeerId peer, van::Message message) override;
  void OnRequest(const proto::Request& request, std::span<const runtime::Buffer> payload);
  Key KeyOf(const proto::Request& request) const;
  void Take(Seen seen);
  void Admit(Admission& shard, const Seen& seen);
  void Apply(const Seen& seen);
  void Answer(const proto::Request& request);
  bool TickCounts() const;
  void AckTick();

  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const van::Identity identity_;
  const std::string address_;
  van::PeerId peer_ = 0;
  std::map<Key, Admission> shards_;
  std::map<std::uint64_t, std::uint32_t> shard_of_block_;
  std::optional<proto::ClockTick> tick_;  // the newest
  std::uint64_t stable_ = 0;
  std::unique_ptr<van::Van> van_;
};

struct TestClusterOptions {
  std::uint32_t servers = 2;  // of one thread each
  std::uint32_t shards = 4;   // dealt out in turn
  std::uint64_t seed = 1;
  std::uint64_t block_bytes = 4096;
  bool late = false;              // the worker
  std::uint64_t start_clock = 0;  // of the cluster: that of the checkpoint it was restored from
  absl::Duration failure_timeout = absl::Minutes(10);
  std::function<void(Config*)> configure = nullptr;
  // Makes the factory that the core gets instead.
  std::function<van::Factory*(van::Factory*)> wrap = nullptr;
};

class TestCluster {
 public:
  explicit TestCluster(TestClusterOptions options = {});
  ~TestCluster();

  // Connects the core.
  void Connect();
  std::shared_ptr<const TableInfo> MakeTable(const TableSpec& spec);

  // Of float tables. `keys` empty: dense.
  std::shared_ptr<Operation> Push(const std::shared_ptr<const TableInfo>& table,
                                  const std::vector<std::uint64_t>& keys,
                                  const std::vector<float>& values, Core::Terms terms = {},
                                  bool copy = false);
  std::shared_ptr<Operation> Pull(const std::shared_ptr<const TableInfo>& table,
                                  const std::vector<std::uint64_t>& keys,
                                  std::vector<float>* values, Core::Terms terms = {});
  std::shared_ptr<Operation> PushPull(const std::shared_ptr<const TableInfo>& table,
                                      const std::vector<float>& values, std::vector<float>* result,
                                      Core::Terms terms = {});
  // Runs the world until the operation is done.
  absl::Status Await(const std::shared_ptr<Operation>& operation);
  void RunUntil(const std::function<bool()>& done);
  // The server dies, and its shards are lost.
  void KillServer(std::uint32_t rank, const std::string& reason);
  // The server dies; its shards go to the living server after it, as if to their successor.
  void FailOver(std::uint32_t rank);
  // The process dies; the map still calls it alive.
  void Crash(std::uint32_t rank);
  void CrashScheduler();
  // Starts a scheduler at "sim://HOST/NAME" with the map and the tables of the last one.
  void StartScheduler(const std::string& address);
  // Publishes the map with a newer epoch.
  void PublishNewEpoch();
  // Expects that on no shard a number is missing between the first and the last admitted.
  void ExpectNoHoles();
  ScriptedServer& OwnerOf(std::uint32_t shard) { return *servers[shard % servers.size()]; }

  runtime::SimWorld world;
  van::SimNetwork network;
  Config config;
  std::unique_ptr<ScriptedScheduler> scheduler;
  std::vector<std::unique_ptr<ScriptedServer>> servers;
  std::unique_ptr<Core> core;

 private:
  struct Process {
    std::unique_ptr<runtime::Host> host;
    std::unique_ptr<van::Factory> factory;
    std::unique_ptr<runtime::LoopRunner> runner;
  };
  Process* Start(const std::string& name);
  proto::Welcome MakeWelcome() const;

  const TestClusterOptions options_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_TESTING_TEST_CLUSTER_H_
