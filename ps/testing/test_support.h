// A data thread under test: with a van that only records, virtual time, and workers that send
// exactly what the test says.
#ifndef LEEWAY_PS_TESTING_TEST_SUPPORT_H_
#define LEEWAY_PS_TESTING_TEST_SUPPORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/data/data_thread.h"
#include "runtime/sim/sim_world.h"
#include "van/van.h"

namespace leeway::ps {

// Keeps what is sent; connects to nobody.
class FakeVan final : public van::Van {
 public:
  explicit FakeVan(van::Handler* handler) : handler_(handler) {}

  absl::StatusOr<std::string> Listen(absl::string_view address) override;
  absl::StatusOr<van::PeerId> Connect(absl::string_view address, absl::Duration timeout) override;
  absl::Status Send(van::PeerId peer, van::Message message, van::SendDone done) override;
  void Disconnect(van::PeerId peer, absl::Status why) override;
  bool Hold(van::PeerId peer) override { return held_.insert(peer).second; }
  void Release(van::PeerId peer) override { held_.erase(peer); }
  bool Writable(van::PeerId) const override { return true; }
  std::string AddressOf(van::PeerId peer) const override;
  van::Identity identity() const override { return identity_; }
  void SetIdentity(const van::Identity& identity) override { identity_ = identity; }
  van::Counters counters() const override { return {}; }

  van::Handler* handler() { return handler_; }
  std::vector<van::Message> TakeSent(van::PeerId peer);
  // Why a peer was dropped, if it was.
  std::optional<absl::Status> Dropped(van::PeerId peer) const;
  const std::set<van::PeerId>& held() const { return held_; }

  std::uint64_t message_bytes_max = 1ull << 30;

 private:
  van::Handler* handler_;
  van::Identity identity_;
  std::map<van::PeerId, std::vector<van::Message>> sent_;
  std::map<van::PeerId, absl::Status> dropped_;
  std::set<van::PeerId> held_;
};

class FakeFactory final : public van::Factory {
 public:
  std::unique_ptr<van::Van> New(runtime::Loop*, const van::Identity& identity, const van::Limits&,
                                van::Handler* handler) override;
  std::string AnyAddress(absl::string_view) const override { return "fake://any"; }
  FakeVan* last = nullptr;
};

// A message that a worker got, with its payload as the test wants to see it.
struct Answer {
  proto::AnyMessage message;
  Payload payload;

  const proto::Reply& reply() const;
  std::vector<float> floats() const;  // the last frame
  std::string text() const;           // the first frame
};

class Bench {
 public:
  struct Options {
    std::uint32_t num_workers = 2;
    std::uint32_t num_shards = 2;
    std::uint64_t held_bytes_max = 1 << 20;
    std::uint64_t message_bytes_max = 1 << 20;
    std::uint64_t table_bytes_max = 0;
    bool never_hold = false;
  };
  static constexpr std::uint64_t kCluster = 77;
  static constexpr std::uint64_t kBlock = 16;  // elements: blocks are 64 bytes

  explicit Bench(Options options);
  Bench() : Bench(Options()) {}

  // Installs a table and returns its id.
  std::uint32_t Install(const TableSpec& spec);

  // Tells the data thread the cluster map as it stands; `map` may be changed before.
  void Publish();
  void SetState(std::uint32_t rank, proto::WorkerState state);
  proto::ClusterMap map;

  // Worker `rank` is peer rank + 1 until it connects again.
  van::PeerId PeerOf(std::uint32_t rank) const { return peers_.at(rank); }
  static std::uint64_t IncarnationOf(std::uint32_t rank) { return 1000 + rank; }
  van::PeerId ConnectAs(const van::Identity& identity);
  void Disconnect(std::uint32_t rank, bool connect_again);

  // Requests of worker `rank` with its next number; the caller may change them before sending.
  proto::Request DensePush(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                           std::uint64_t block = 0);
  proto::Request DensePull(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                           std::uint64_t block = 0);
  proto::Request SparsePull(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                            std::uint32_t shard, std::uint64_t keys);
  static Payload Values(const std::vector<float>& values);
  static Payload Filled(float value) { return Values(std::vector<float>(kBlock, value)); }
  static Payload Keys(const std::vector<std::uint64_t>& keys);

  void Send(std::uint32_t rank, const proto::AnyMessage& message, Payload payload = {});
  void SendFrom(van::PeerId peer, const proto::AnyMessage& message, Payload payload = {});
  void SendRaw(van::PeerId peer, van::Message message);
  // Ends the worker's iterations up to `clock`, with all it has sent as watermarks.
  void Tick(std::uint32_t rank, std::uint64_t clock);

  // Everything the worker got since it last asked.
  std::vector<Answer> Take(std::uint32_t rank) { return TakeFrom(PeerOf(rank)); }
  std::vector<Answer> TakeFrom(van::PeerId peer);
  // Like Take, of one reply; clock acknowledgements are dropped. Fails the test otherwise.
  Answer TakeReply(std::uint32_t rank);
  bool GotReply(std::uint32_t rank);  // leaves it there

  absl::Status PushNow(std::uint32_t rank, std::uint32_t table, std::uint64_t clock, float value,
                       std::uint64_t block = 0);
  std::vector<float> PullNow(std::uint32_t rank, std::uint32_t table, std::uint64_t clock,
                             std::uint64_t block = 0);

  DataThread& thread() { return *thread_; }
  const Counters& counters() const { return thread_->counters(); }
  FakeVan& van() { return *factory_.last; }
  runtime::SimWorld& world() { return world_; }

 private:
  // The requests of a worker to a shard count 1, 2, …; each names the one before it of its class.
  struct Numbers {
    std::uint64_t last = 0;
    std::uint64_t last_of_class[2] = {0, 0};
  };
  void Number(proto::Request* request);

  const Options options_;
  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  FakeFactory factory_;
  TableMemory table_memory_;
  std::unique_ptr<DataThread> thread_;
  std::uint32_t tables_ = 0;
  van::PeerId last_peer_ = 0;
  std::map<std::uint32_t, van::PeerId> peers_;                         // by rank
  std::map<std::uint32_t, std::map<std::uint32_t, Numbers>> numbers_;  // by rank and shard
  std::set<std::uint32_t> held_tables_;
  std::map<van::PeerId, std::vector<Answer>> receiver_;
};

// The table most tests use: 32 floats in two blocks, updater "add".
TableSpec AddTable(const std::string& name, const Consistency& consistency);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TESTING_TEST_SUPPORT_H_
