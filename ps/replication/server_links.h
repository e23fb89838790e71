// A data thread's connections to the data threads of other servers. They are made when they are
// needed, to the endpoints that the map names, and used once the process at the other end has
// proved to be the one that the map names.
#ifndef LEEWAY_PS_REPLICATION_SERVER_LINKS_H_
#define LEEWAY_PS_REPLICATION_SERVER_LINKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/replication/successor.h"
#include "van/van.h"

namespace leeway::ps {

class Links {
 public:
  explicit Links(absl::Duration connect_timeout) : connect_timeout_(connect_timeout) {}

  // Before the first To(); it outlives this.
  void SetVan(van::Van* van) { van_ = van; }
  // Drops the connections to servers that are gone.
  void TakeMap(std::shared_ptr<const proto::ClusterMap> map);

  // The connection to that data thread; none while it is being made.
  std::optional<van::PeerId> To(const Peer& peer);

  // If it is one of these connections, the place at its other end.
  std::optional<proto::ShardOwner> OnPeerUp(van::PeerId connection, const van::Identity& identity);
  bool OnPeerDown(van::PeerId connection);

  // The living server that a process is.
  std::optional<Peer> ServerOf(const van::Identity& identity) const;

 private:
  struct Link {
    Peer peer;
    van::PeerId connection = 0;
    bool up = false;
  };
  using ThreadKey = std::pair<std::uint32_t, std::uint32_t>;  // server rank, thread

  const proto::ServerEntry* EntryOf(const Peer& peer) const;
  std::map<ThreadKey, Link>::iterator Find(van::PeerId connection);

  const absl::Duration connect_timeout_;
  van::Van* van_ = nullptr;
  std::shared_ptr<const proto::ClusterMap> map_ = std::make_shared<const proto::ClusterMap>();
  std::map<ThreadKey, Link> links_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_SERVER_LINKS_H_
