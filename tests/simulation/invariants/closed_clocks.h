// ClosedClocks checks "acknowledged clocks never go back" for the clocks that a shard has closed,
// over all its heads: "clock c closes … It does not reopen" (docs/consistency.md).
//
// A clock to which any worker contributed has closed for good once a Close of it is committed. (For
// other clocks nothing is logged: a new head need not know of them.) From then on no Close closes
// it again, no late worker enters before it, the state in a state transfer and the answers of BSP
// tables to later requests know it, and each Close says of every worker at least what the ones
// before it said, unless another process has its rank. And every member of the shard's chain knows
// it. Messages of a deposed head that does not know its successor yet are not judged, since they
// are fenced.
#ifndef LEEWAY_TESTS_SIMULATION_INVARIANTS_CLOSED_CLOCKS_H_
#define LEEWAY_TESTS_SIMULATION_INVARIANTS_CLOSED_CLOCKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "tests/simulation/log_history.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class ClosedClocks {
 public:
  // `logs` hears each message before this object does.
  explicit ClosedClocks(const LogHistory* logs) : logs_(logs) {}

  // A message leaves a host (SimNetwork::Tap). Returns what is wrong with it; empty: nothing.
  std::string Hear(const van::Overheard& heard);
  // Clocks below the result have closed in the shard, and its replicas know that.
  std::uint64_t ClosedIn(std::uint32_t shard) const;

 private:
  using Worker = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation
  using Sessions = std::map<Worker, proto::ClientSession>;
  struct Entry {  // of a log; of entries that close nothing only the epoch
    std::uint64_t epoch = 0;
    bool closes = false;
    std::uint64_t clock = 0;
    std::vector<proto::ClientSession> workers;
  };
  struct Shard {
    // From the last committed Close, which is entry `index`.
    std::uint64_t closed = 0, index = 0;
    Sessions sessions;
    std::uint64_t since = 0;              // the newest epoch that was known then
    std::map<std::uint64_t, Entry> open;  // by index: not committed yet
    // By epoch and index: clocks that are closed.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> closes;
  };
  std::string OnEntry(const proto::Replicate& sent);
  std::string OnClose(Shard* shard, const proto::Replicate& sent);
  std::string OnWindows(const Shard& shard, const proto::Replicate& sent) const;
  void Commit(std::uint32_t id);
  void OnRequest(const proto::Request& request);
  std::string OnReply(const proto::Reply& reply);

  const LogHistory* const logs_;
  std::map<std::uint32_t, Shard> shards_;
  std::set<std::uint32_t> bsp_;                          // tables
  std::map<std::uint32_t, std::uint64_t> incarnations_;  // by rank, as the newest map has them
  std::uint64_t version_ = 0;                            // of that map
  std::uint64_t epoch_ = 0;                              // the newest one that is known
  // ClosedIn when each pull of a BSP table was first asked, by rank, incarnation, shard and number.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>, std::uint64_t>
      asked_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_CLOSED_CLOCKS_H_
