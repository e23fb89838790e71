// Messages of every type, as an attacker that knows a cluster makes them.
#ifndef LEEWAY_TESTS_STORM_EVERY_MESSAGE_H_
#define LEEWAY_TESTS_STORM_EVERY_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/messages/messages.h"
#include "tests/storm/hostile_peer.h"

namespace leeway::storm {

// What any peer that reaches the scheduler can learn: it joins as a reader, which anybody may.
struct KnownCluster {
  std::uint64_t id = 0;
  std::uint64_t block_bytes = 0;
  proto::ClusterMap map;
  std::vector<proto::TableReply> tables;
};
absl::StatusOr<KnownCluster> LearnCluster(const std::string& scheduler);

// Messages of all types (proto::AllSamples, which tests keep complete), with ids, keys and blocks
// of the cluster's tables where a field of that name holds them; and pulls and a push of all of its
// tables. In the same order whoever says them.
class EveryMessage {
 public:
  struct Said {
    proto::AnyMessage message;
    tests::Frames payload;
    std::string Bytes() const;
  };

  // To a node of that role.
  EveryMessage(const KnownCluster* cluster, const Guise& as, Role at)
      : cluster_(cluster), as_(as), at_(at) {}

  std::vector<Said> All(std::uint64_t incarnation) const;

  // Leaves out those for which a node at that address drops a peer: another attack says those. Asks
  // it, some seconds long.
  void LeaveOutRefused(const std::string& address);
  // All others, one after the other, as that process says them.
  std::string Bytes(std::uint64_t incarnation) const;
  std::size_t types() const;  // that it says

 private:
  std::string Joins() const;  // empty: it does not join there
  Said Fitted(Said sample, std::uint64_t incarnation) const;
  void AddRequests(const proto::TableReply& table, std::uint64_t incarnation,
                   std::vector<Said>* all) const;
  std::vector<bool> AskAbout(const std::string& address, std::size_t begin, std::size_t end) const;

  const KnownCluster* const cluster_;
  const Guise as_;
  const Role at_;
  std::vector<bool> refused_;  // by their order
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_EVERY_MESSAGE_H_
