// One replica of a shard under test. The test plays all its neighbours: it says what each sends, in
// which order, and sees what the replica sends back.
#ifndef LEEWAY_PS_TESTING_REPLICA_BENCH_H_
#define LEEWAY_PS_TESTING_REPLICA_BENCH_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "ps/replication/replica.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/table/counters.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {

// The replica is on server 1. Its shard has one dense ASP table of four floats, which pushes add
// to.
class ReplicaBench : public testing::Test, private ReplicaHost, private ReplySink {
 protected:
  static constexpr std::uint32_t kTable = 1, kBspTable = 2;
  static constexpr std::uint64_t kElements = 4;
  static constexpr van::PeerId kConnection = 9;
  static constexpr std::uint64_t kWorker = 700;  // incarnation of worker 0

  ReplicaBench() {
    shards_.loop = runner_->loop();
    shards_.counters = &counters_;
    shards_.num_shards = 1;
    shards_.block_bytes = kElements * sizeof(float);
    shards_.message_bytes_max = shards_.held.bytes_max = 1 << 20;
    context_.host = this;
    context_.replies = this;
    context_.shards = &shards_;
    context_.place = {.server_rank = 1};
    context_.replication = 2;
    context_.log.bytes_max = 1 << 20;
    context_.limits.resend_first = absl::Milliseconds(100);
    TableSpec spec = TableSpec::Dense("t", {kElements});
    spec.consistency = Consistency::Asp();
    absl::StatusOr<std::unique_ptr<Updater>> updater = MakeUpdater(spec);
    EXPECT_TRUE(updater.ok() && shards_.tables.Install(kTable, spec, *std::move(updater)).ok());
    TableSpec bsp = spec;
    bsp.name = "bsp";
    bsp.consistency = Consistency::Bsp();
    EXPECT_TRUE(shards_.tables.Install(kBspTable, bsp, *MakeUpdater(bsp)).ok());
    scratch_updater_ = *MakeUpdater(spec);
    scratch_ = NewShardStore(spec, {.num_shards = 1, .block_bytes = shards_.block_bytes},
                             scratch_updater_.get());
    replica_.emplace(0, &context_);
  }

  // ---- the scheduler ----

  // A new epoch with that chain. Servers are those of ranks 0 to 4.
  void TakeChain(const std::vector<std::uint32_t>& members,
                 const std::vector<std::uint32_t>& joining = {}) {
    proto::ClusterMap map{.version = ++epoch_, .epoch = epoch_};
    map.owners = {{.server_rank = members.front()}};
    for (std::size_t i = 1; i < members.size(); ++i) {
      map.replicas.push_back({.place = {.server_rank = members[i]}});
    }
    for (const std::uint32_t rank : joining) {
      map.replicas.push_back({.place = {.server_rank = rank}, .joining = true});
    }
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      map.servers.push_back({.node = rank + 10,
                             .rank = rank,
                             .alive = rank != dead_,
                             .endpoints = {"sim://server"},
                             .incarnation = 500 + rank});
    }
    replica_->TakeMap(map);
  }
  std::uint64_t epoch() const { return epoch_; }
  void Die(std::uint32_t rank) { dead_ = rank; }

  // ---- the predecessor ----

  static Peer Server(std::uint32_t rank) {
    return {.place = {.server_rank = rank}, .incarnation = 500 + rank};
  }
  // Number `number` of a stream; of the newest epoch unless another is said.
  void Say(std::uint32_t server, std::uint64_t stream, std::uint64_t number, LogEntry entry,
           std::optional<std::uint64_t> epoch = std::nullopt) {
    entry.header.stream = stream;
    entry.header.entry = number;
    entry.header.epoch = epoch.value_or(epoch_);
    replica_->OnEntry(Server(server), kConnection, std::move(entry));
  }
  static Inbound PushOf(std::uint64_t sequence, float value, std::uint32_t table = kTable) {
    Inbound inbound;
    inbound.peer = 3;
    inbound.request.id = {.incarnation = kWorker, .sequence = sequence};
    inbound.request.table = table;
    inbound.request.elements = kElements;
    inbound.request.after = sequence - 1;
    const std::vector<float> values(kElements, value);
    inbound.payload.push_back(
        runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(float)));
    return inbound;
  }
  // Entry `index` of the log: a push that adds `value`.
  static LogEntry Entry(std::uint64_t index, float value) {
    LogEntry entry = PushEntry(PushOf(index, value));
    entry.header.index = index;
    return entry;
  }
  // The update of entry `index`, a Close: it adds `value`.
  LogEntry Update(std::uint64_t index, float value) {
    const std::vector<PushView> pushes = {ToPush(PushOf(index, value))};
    absl::StatusOr<AggregatedPush> aggregate = scratch_->Combine(pushes, 1);
    EXPECT_TRUE(aggregate.ok()) << aggregate.status();
    LogEntry entry = UpdateEntry(*shards_.tables.Find(kTable), *aggregate, {});
    entry.header.index = index;
    return entry;
  }
  // A piece of a state transfer: what one push of `value` leads to.
  LogEntry Piece(float value) {
    EXPECT_TRUE(scratch_->Apply(ToPush(PushOf(1, value))).ok());
    return PieceEntry(*shards_.tables.Find(kTable), scratch_->Freeze().pieces.at(0));
  }
  static LogEntry Held(std::uint64_t sequence, float value) {
    LogEntry entry = PushEntry(PushOf(sequence, value));
    entry.header.kind = proto::LogEntryKind::kHeld;
    return entry;
  }
  static LogEntry Of(proto::LogEntryKind kind, std::uint64_t index = 0) {
    LogEntry entry;
    entry.header.kind = kind;
    entry.header.index = index;
    return entry;
  }

  // ---- a worker ----

  absl::Status Push(float value) {
    Inbound push = PushOf(++pushes_, value);
    if (absl::Status can = replica_->CanTake(push.request); !can.ok()) return can;
    replica_->shard().TakeRequest(std::move(push));
    return absl::OkStatus();
  }

  // A push with that number, sent for the first time or again.
  void PushAs(std::uint64_t sequence, float value, std::uint32_t table = kTable) {
    replica_->shard().TakeRequest(PushOf(sequence, value, table));
  }
  void Read() {
    Inbound inbound;
    inbound.peer = 4;
    inbound.request.op = proto::Op::kPull;
    inbound.request.table = kTable;
    inbound.request.elements = kElements;
    replica_->shard().Read(std::move(inbound));
  }

  // ---- the successor ----

  void Acknowledge(std::uint32_t server, std::uint64_t stream, std::uint64_t number,
                   std::uint64_t committed, std::uint64_t since = 0) {
    replica_->OnAck(Server(server), kConnection,
                    {.stream = stream, .entry = number, .committed = committed, .since = since});
  }
  // The entries that it was sent since this was asked last.
  std::vector<std::uint64_t> SentTo(std::uint32_t server) {
    std::vector<std::uint64_t> indexes;
    for (const auto& [rank, entry] : std::exchange(entries_, {})) {
      if (rank == server) indexes.push_back(entry.index);
      stream_ = entry.stream;
    }
    return indexes;
  }
  std::uint64_t stream() const { return stream_; }  // of the entries that were sent last

  // ---- what there is ----

  Replica& replica() { return *replica_; }
  float Value() {
    const auto store = replica_->shard().stores().find(kTable);
    if (store == replica_->shard().stores().end()) return 0;
    const std::vector<FrozenPiece> pieces = store->second->Freeze().pieces;
    return pieces.empty() ? 0 : reinterpret_cast<const float*>(pieces[0].values.data())[0];
  }
  std::uint64_t index() { return replica_->shard().index(); }
  ReplicaContext& context() { return context_; }
  ShardContext& shard_context() { return shards_; }
  const Counters& counters() const { return counters_; }
  // Advances the clock and does what is due.
  void Pass(absl::Duration time) {
    world_.RunFor(time);
    replica_->ResendIfDue(shards_.loop->Now());
  }

  std::vector<proto::ReplicateAck> back_;       // sent back to where something came from
  std::vector<proto::Replicate> entries_back_;  // likewise
  std::vector<proto::ReplicateAck> asked_;      // sent to another server
  std::vector<proto::Reply> replies_;
  std::vector<absl::Status> broken_;

 private:
  bool Reaches(const Peer&) override { return true; }
  bool SendTo(const Peer& to, const proto::AnyMessage& message, const Payload&) override {
    if (const auto* entry = std::get_if<proto::Replicate>(&message)) {
      entries_.emplace_back(to.place.server_rank, *entry);
    } else {
      asked_.push_back(std::get<proto::ReplicateAck>(message));
    }
    return true;
  }
  void SendBack(van::PeerId, const proto::AnyMessage& message) override {
    if (const auto* ack = std::get_if<proto::ReplicateAck>(&message)) back_.push_back(*ack);
    if (const auto* entry = std::get_if<proto::Replicate>(&message))
      entries_back_.push_back(*entry);
  }
  void SendReply(van::PeerId, proto::Reply reply, Payload) override { replies_.push_back(reply); }
  void DropSoon(van::PeerId, const absl::Status&) override {}
  void AcknowledgeSoon(std::uint32_t) override {}
  void ConfirmSoon(std::uint32_t) override {}
  void ResendAt(absl::Time) override {}
  void StableHasGrown() override {}
  void OnBroken(const absl::Status& why) override { broken_.push_back(why); }

  runtime::SimWorld world_{1};
  const std::unique_ptr<runtime::Host> host_ = world_.NewHost("server1");
  const std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("data");
  Counters counters_;
  ShardContext shards_;
  ReplicaContext context_;
  std::unique_ptr<Updater> scratch_updater_;
  std::unique_ptr<ShardStore> scratch_;
  std::optional<Replica> replica_;
  std::uint64_t epoch_ = 0, pushes_ = 0, stream_ = 0;
  std::uint32_t dead_ = 99;
  std::vector<std::pair<std::uint32_t, proto::Replicate>> entries_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TESTING_REPLICA_BENCH_H_
