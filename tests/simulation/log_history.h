// LogHistory records the replication logs of a run, as they went over the network, and checks two
// invariants.
//
// "committed entries stay": once the tail of a chain has acknowledged entry i, which it was sent,
// as applied, every later message with entry i of that shard's log has a content that had been sent
// as entry i before; an entry that was in a state alone, because there was nobody to send it to,
// has the content that is seen first. So a new head that decides otherwise, or a replica that
// counts differently, is found at once, and not only when the replicas are compared at the end of
// the run. "one head an epoch": in one epoch all servers send the same entry i.
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

  // A message leaves a host (SimNetwork::Tap). Messages of hosts other than servers are ignored.
  void Hear(const van::Overheard& heard);
  // True if an entry of that kind is an entry of the log, or a part of one.
  static bool IsOfEntry(proto::LogEntryKind kind);
  std::uint64_t entries() const { return entries_; }  // that were recorded
  // The last committed entry of a shard's log, as far as it was recorded.
  std::uint64_t committed(std::uint32_t shard) const {
    const auto found = logs_.find(shard);
    return found == logs_.end() ? 0 : found->second.committed;
  }

 private:
  struct Log {
    std::uint64_t committed = 0;
    std::uint64_t committed_in = 0;  // the newest epoch that was known when it was committed
    std::uint64_t epoch = 0;         // the newest epoch that is known now
    std::map<std::uint64_t, std::set<std::uint64_t>> entries;  // digests by index
    std::uint64_t in_states = 0;  // the last entry of a state that was sent
    // Of entries that had been in states alone: who sent them first, and in which epoch.
    std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> first_sent_by;
    // By sender and stream: the last entry that the stream has brought, by itself or in a state.
    std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> brought;
    // By epoch and index; several messages may be one entry.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> of_epoch;
  };

  void HearAck(const std::string& to, const proto::ReplicateAck& ack);
  void HearEntry(const std::string& from, const proto::Replicate& entry, std::uint64_t digest);

  Checker* const checker_;
  std::map<std::uint32_t, Log> logs_;  // by shard
  std::uint64_t entries_ = 0;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_LOG_HISTORY_H_
