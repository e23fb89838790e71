// The links to all data threads of all servers: connects them, connects them again, and leads them
// to new processes, as the cluster map says.
//
// A connection that breaks is made again with a growing delay until the map calls its server dead.
// Owned by Core, from the welcome on; lives on its loop. Messages that cannot be read cost the
// connection.
#ifndef LEEWAY_WORKER_LINKS_SERVERS_H_
#define LEEWAY_WORKER_LINKS_SERVERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "van/van.h"
#include "worker/links/link.h"

namespace leeway::worker {

class Servers final : public van::Handler {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnLinkUp(Link* link) = 0;
    virtual void OnLinkDown(Link* link, const absl::Status& why) = 0;
    // All messages but replies to requests.
    virtual void OnServerMessage(Link* link, proto::AnyMessage message,
                                 std::span<runtime::Buffer> payload) = 0;
  };
  // Gets the replies to requests, which Requests knows.
  class ReplyListener {
   public:
    virtual ~ReplyListener() = default;
    virtual void OnReply(Link* link, const proto::Reply& reply,
                         std::span<runtime::Buffer> payload) = 0;
    virtual void OnAcks(Link* link, const proto::PushAcks& acks) = 0;
  };

  Servers(const Config& config, runtime::Loop* loop, van::Factory* factory,
          const van::Identity& identity, Listener* listener);
  ~Servers() override { lifetime_.End(); }

  // Once, before Follow. `listener` outlives all calls but Close().
  void SetReplyListener(ReplyListener* listener) { reply_listener_ = listener; }

  // Connects to servers that are new in the map, drops those that it calls dead (without
  // OnLinkDown: the map has said it), and leads the links of a rank that a new process has taken to
  // that process.
  void Follow(const proto::ClusterMap& map);
  // Why a server died, for errors; to be called before Follow of the map that says so.
  void NoteDeath(std::uint32_t node, std::string reason);

  // Null where the map has no such thread.
  Link* Find(std::uint32_t server_rank, std::uint32_t thread) const;
  using Links = std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Link>>;
  const Links& links() const { return links_; }

  absl::Status Send(Link* link, const proto::AnyMessage& message,
                    std::span<const runtime::Buffer> payload, van::SendDone done = nullptr);
  // Adds a small push, whose payload it copies, to a message that is sent before the loop sleeps or
  // anything else is sent over the link. False if the push has to be sent by itself.
  bool SendWithOthers(Link* link, const proto::Request& request,
                      std::span<const runtime::Buffer> payload);
  // As van::Van::PostReceive.
  van::ReceiveHandle PostReceive(const Link& link, std::uint64_t token, std::span<std::byte> into) {
    return van_->PostReceive(link.peer, token, into);
  }
  bool Writable(const Link* link) const { return link->up && van_->Writable(link->peer); }
  // Drops the connection and makes a new one.
  void Reconnect(Link* link);
  // Closes all connections in order. The listeners are not called from here on.
  void Close();

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override;
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override;
  void OnMessage(van::PeerId peer, van::Message message) override;
  std::string NameOf(van::PeerId peer, const van::Identity& identity) const override;

  static absl::Status CheckPeer(const Link& link, const van::Identity& identity);
  void Place(const proto::ServerEntry& server, std::uint32_t thread);
  void Connect(Link* link);
  void ConnectLater(Link* link);
  void ReportUnreachable(Link* link, const absl::Status& why);
  void Drop(Link* link, const absl::Status& why);
  void SendBatch(Link* link);
  void SendBatches();
  Link* Of(van::PeerId peer) const;

  const absl::Duration connect_timeout_;
  runtime::Loop* const loop_;
  Listener* const listener_;
  ReplyListener* reply_listener_ = nullptr;
  std::map<std::uint32_t, std::string> deaths_;  // by node
  Links links_;
  std::map<van::PeerId, Link*> by_peer_;
  std::vector<Link*> with_batch_;  // whose batches are to be sent before the loop sleeps
  runtime::Lifetime lifetime_;
  std::unique_ptr<van::Van> van_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_LINKS_SERVERS_H_
