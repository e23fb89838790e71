// "acknowledged clocks never go back", of the clocks that a shard has closed, over all that become
// its head: "clock c closes … It does not reopen" (docs/consistency.md).
//
// A clock that anybody gave something to has closed for good once a Close of it is committed. (Of
// the others nothing is logged: a new head need not know of them.) From then on no Close closes it
// again, no late worker enters before it, the state that a replica is filled with and answers of
// BSP tables to what is asked afterwards know it, and each Close says of every worker at least what
// those before it said, unless another process has its rank. And every member of the shard's chain
// knows it. What a deposed head says that has not heard of its end is not judged: it is not
// believed either.
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
  // `logs` hears each message before this does.
  explicit ClosedClocks(const LogHistory* logs) : logs_(logs) {}

  // A message leaves a host (SimNetwork::Tap). What is wrong with it; empty: nothing.
  std::string Hear(const van::Overheard& heard);
  // The clocks below it have closed in the shard, and its replicas know.
  std::uint64_t ClosedIn(std::uint32_t shard) const;

 private:
  using Worker = std::pair<std::uint32_t, std::uint64_t>;  // rank, incarnation
  using Windows = std::map<Worker, proto::ClientSession>;
  struct Entry {  // of a log; of those that close nothing only the epoch
    std::uint64_t epoch = 0;
    bool closes = false;
    std::uint64_t clock = 0;
    std::vector<proto::ClientSession> workers;
  };
  struct Shard {
    // By the last Close that is committed, which is entry `index`.
    std::uint64_t closed = 0, index = 0;
    Windows windows;
    std::uint64_t since = 0;              // the newest epoch that was heard of then
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
  std::uint64_t epoch_ = 0;                              // the newest that was heard of
  // ClosedIn when each pull of a BSP table was first asked, by rank, incarnation, shard and number.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>, std::uint64_t>
      asked_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_INVARIANTS_CLOSED_CLOCKS_H_
