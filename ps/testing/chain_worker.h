// A scripted worker for tests of chains of replicas: it numbers requests, keeps them and sends them
// again as docs/fault-tolerance.md asks of workers, and nothing else.
#ifndef LEEWAY_PS_TESTING_CHAIN_WORKER_H_
#define LEEWAY_PS_TESTING_CHAIN_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/table/inbound.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"
#include "van/van.h"

namespace leeway::ps {

class ChainWorker final : private van::Handler {
 public:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // shard, number

  ChainWorker(runtime::SimWorld* world, van::SimNetwork* network, const std::string& host,
              const van::Identity& identity, std::uint32_t rank);
  ~ChainWorker() override;

  void TakeMap(const proto::ClusterMap& map);

  // `request` as far as table, operation, clock and target go; the rest is filled in.
  Key Submit(proto::Request request, Payload payload, bool held);
  void Tick(std::uint64_t clock);
  void Enter();

  // Every request has been answered and the newest tick is counted everywhere.
  bool Idle() const;
  // That server has acknowledged its newest tick.
  bool TickCounted(std::uint32_t server) const {
    const auto acked = clock_acked_.find(server);
    return acked != clock_acked_.end() && acked->second >= clock_;
  }
  // No push is kept for a clock that has not closed on all replicas.
  bool KeepsNothing() const;
  bool Answered(const Key& key) const { return !open_.contains(key) || open_.at(key).answered; }
  absl::Status ResultOf(const Key& key) const;
  std::vector<float> ValuesOf(const Key& key) const { return values_.at(key); }
  std::string AnswerOf(const Key& key) const { return answers_.at(key); }  // to a call
  // The clock it has entered at, once all data threads have said theirs.
  std::optional<std::uint64_t> entered() const;
  std::uint64_t resends() const { return resends_; }
  // Clocks below it have closed on all replicas, as servers have said since its newest map.
  std::uint64_t stable_told() const { return stable_told_; }

 private:
  struct Open {
    proto::Request request;
    Payload payload;
    bool held = false;
    bool answered = false;  // provisionally: kept until its clock is stable
  };

  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;

  void OnReply(const proto::Reply& reply, const Payload& payload);
  void OnClockAck(van::PeerId peer, const proto::ClockAck& ack);
  void Send(const Key& key);
  void SendTick(std::uint32_t server);
  void SendTo(std::uint32_t server, const proto::AnyMessage& message, Payload payload = {});
  void ResendAll(bool kept_too);
  void OnTimer();
  // Servers that are the head of some shard.
  std::vector<std::uint32_t> Heads() const;

  const std::uint32_t rank_;
  const std::uint64_t incarnation_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<van::Van> van_;

  proto::ClusterMap map_;
  std::map<std::uint32_t, std::uint64_t> head_since_;  // by shard: the epoch
  std::map<std::uint32_t, van::PeerId> peers_;         // by server
  std::map<std::uint32_t, std::uint64_t> last_;        // by shard: number
  std::map<Key, Open> open_;                           // in order
  std::map<Key, absl::Status> failures_;
  std::map<Key, std::vector<float>> values_;
  std::map<Key, std::string> answers_;
  std::uint64_t clock_ = 0;
  std::uint64_t since_ = 0;                             // the clock it has entered at
  std::map<std::uint32_t, std::uint64_t> clock_acked_;  // by server
  std::map<std::uint32_t, std::uint64_t> entered_;      // by server
  bool entering_ = false;
  std::uint64_t resends_ = 0, stable_told_ = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TESTING_CHAIN_WORKER_H_
