// The place of one replica in the chain of its shard, as the newest map has it: its role and its
// neighbours. A value that knows nothing of connections or of what has been sent.
//
//        workers ──▶ head ──▶ … ──▶ tail            (──▶ one that is joining)
#ifndef LEEWAY_PS_REPLICATION_CHAIN_PLACE_H_
#define LEEWAY_PS_REPLICATION_CHAIN_PLACE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/replication/successor.h"

namespace leeway::ps {

class ChainPlace {
 public:
  enum class Role { kNone, kHead, kFollower, kJoining };

  // `here`: of the data thread; known before the first map, and outlives this.
  ChainPlace(std::uint32_t shard, const proto::ShardOwner* here) : shard_(shard), here_(here) {}

  // Takes a newer map. Returns whether the chain has changed.
  bool TakeMap(const proto::ClusterMap& map);
  // The map calls this replica a member before it has the state: it stays one that is joining.
  void StayJoining() { role_ = Role::kJoining; }

  std::uint64_t epoch() const { return epoch_; }
  Role role() const { return role_; }
  bool is_head() const { return role_ == Role::kHead; }
  bool is_member() const { return role_ == Role::kHead || role_ == Role::kFollower; }
  bool is_joining() const { return role_ == Role::kJoining; }
  std::optional<Peer> head() const {
    return members_.empty() ? std::nullopt : std::optional(members_.front());
  }
  // No other replica is a member, or may be one by now.
  bool alone() const { return members_.size() <= 1 && joining_.empty(); }

  // The replica that this one takes the log from; none: the head, or no replica.
  std::optional<Peer> predecessor() const;
  // The replica that the log is passed on to: the next member, or behind the tail one that is
  // joining.
  std::optional<Peer> successor() const;
  bool is_tail() const { return !members_.empty() && members_.back().place == *here_; }

 private:
  Role RoleInChain() const;
  std::vector<Peer>::const_iterator Here() const;

  const std::uint32_t shard_;
  const proto::ShardOwner* const here_;
  std::uint64_t epoch_ = 0;
  std::vector<Peer> members_;  // head first
  std::vector<Peer> joining_;
  Role role_ = Role::kNone;
};

// Whether the map shows that incarnation of that server as living.
bool IsAlive(const proto::ClusterMap& map, const Peer& peer);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_CHAIN_PLACE_H_
