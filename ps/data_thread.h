// A server's data thread: takes what workers send to its endpoint, makes sure of who sent it and by
// which map, and hands it to the shard concerned (shard.h). docs/architecture.md has the rules.
#ifndef LEEWAY_PS_DATA_THREAD_H_
#define LEEWAY_PS_DATA_THREAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "ps/counters.h"
#include "ps/shard.h"
#include "ps/shard_context.h"
#include "ps/workers.h"
#include "runtime/loop.h"
#include "van/van.h"

namespace leeway::ps {

// Switches for tests; a user has no way to them.
struct DataOptions {
  bool test_only_never_hold = false;  // ShardContext
};

// Lives on one loop: constructed, used and destroyed there (or while the loop does not turn).
class DataThread final : private van::Handler, private Replier {
 public:
  struct Setup {
    Config config;
    std::uint32_t index = 0;        // among the server's data threads
    std::uint64_t incarnation = 0;  // the server's
    runtime::Loop* loop = nullptr;
    van::Factory* factory = nullptr;
    DataOptions options;
  };

  explicit DataThread(const Setup& setup);
  ~DataThread() override = default;

  // Returns the address workers connect to.
  absl::StatusOr<std::string> Listen(absl::string_view address);

  // Where the scheduler has put this server. Before the first map.
  void SetPlace(const proto::Welcome& welcome);
  // A newer map; older ones are ignored.
  void TakeMap(std::shared_ptr<const proto::ClusterMap> map);
  absl::Status InstallTable(std::uint32_t id, const TableSpec& spec,
                            std::unique_ptr<Updater> updater);
  void ForgetTable(std::uint32_t id) { context_.tables.Forget(id); }

  const Counters& counters() const { return counters_; }
  std::string StatusJson() const;

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;
  void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) override;

  void OnRequest(const van::Identity& sender, Inbound inbound);
  void OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick);
  void OnCall(van::PeerId peer, const van::Identity& sender, const proto::Call& call,
              const Payload& payload);

  // The one reason not to admit a request now that leaves its number unused.
  absl::Status CheckEpoch(const Inbound& inbound);
  void TellShards(WorkerRecord* worker, proto::ClockTick* tick);
  void AcknowledgeTickIfDue(WorkerRecord* worker);

  // The shards that the map says are here, and no others.
  void TakeShards();
  Shard* Find(std::uint32_t shard) const;
  void Refuse(const Inbound& inbound, const absl::Status& why);
  void Violation(van::PeerId peer, const absl::Status& why);
  absl::Status Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload = {});

  const Setup setup_;
  Counters counters_;
  std::uint64_t cluster_ = 0;
  std::uint32_t server_rank_ = 0;
  std::shared_ptr<const proto::ClusterMap> map_;  // never null
  std::map<van::PeerId, van::Identity> peers_;
  Workers workers_;
  ShardContext context_;
  std::map<std::uint32_t, std::unique_ptr<Shard>> shards_;
  std::unique_ptr<van::Van> van_;  // last: it may call nothing of the above when it goes
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_THREAD_H_
