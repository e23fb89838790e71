// The replication logs of a run, as they went over the network: the material of two invariants.
//
// "committed entries stay": once the tail of a chain has said that it has applied entry i, whatever
// is sent as entry i of that shard's log afterwards is one that had been sent as such before. A new
// head that decides otherwise, or a replica that counts differently, is seen at once, and not only
// when the replicas are compared at the end of the run.
// "one head an epoch": in one epoch all servers send the same entry i.
#ifndef LEEWAY_TESTS_SIMULATION_LOG_HISTORY_H_
#define LEEWAY_TESTS_SIMULATION_LOG_HISTORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "proto/messages/messages.h"
#include "tests/simulation/checker.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class LogHistory {
 public:
  explicit LogHistory(Checker* checker) : checker_(checker) {}

  // A message that leaves a host (SimNetwork::Tap). Those of others than servers are passed over.
  void Hear(const van::Overheard& heard);
  // Whether an entry of that kind is an entry of the log, or the part of one.
  static bool IsOfEntry(proto::LogEntryKind kind);
  std::uint64_t entries() const { return entries_; }  // that were heard
  // The last entry of a shard's log that is committed, of those that were heard.
  std::uint64_t committed(std::uint32_t shard) const {
    const auto found = logs_.find(shard);
    return found == logs_.end() ? 0 : found->second.committed;
  }

 private:
  struct Log {
    std::uint64_t committed = 0;
    std::uint64_t committed_in = 0;  // the newest epoch that was heard of when it was committed
    std::uint64_t epoch = 0;         // likewise, now
    std::map<std::uint64_t, std::set<std::uint64_t>> entries;  // digests by index
    std::map<std::uint64_t, std::string> origins;  // by index: the first that sent all of it
    // By epoch and index; of entries that are one entry.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> of_epoch;
  };

  void HearAck(const std::string& from, const proto::ReplicateAck& ack);
  void HearEntry(const std::string& from, const proto::Replicate& entry, std::uint64_t digest);

  Checker* const checker_;
  std::map<std::uint32_t, Log> logs_;  // by shard
  std::uint64_t entries_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_LOG_HISTORY_H_
