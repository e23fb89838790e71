// The answer of a data thread to a StatusRequest, as JSON.
#ifndef LEEWAY_PS_DATA_STATUS_JSON_H_
#define LEEWAY_PS_DATA_STATUS_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/data/rates.h"
#include "ps/replication/replica.h"
#include "ps/table/counters.h"
#include "van/van.h"

namespace leeway::ps {

struct StatusView {
  std::uint32_t server_rank = 0;
  std::uint32_t thread = 0;
  const proto::ClusterMap* map = nullptr;
  const Counters* counters = nullptr;
  van::Counters van;
  const ShardContext* context = nullptr;
  std::vector<van::Stall> stalls;
  Rates::PerSecond rates;
  absl::Time now;                           // of the loop
  std::uint64_t log_bytes = 0;              // not on every replica yet
  std::uint64_t readers_waiting_bytes = 0;  // of answers to readers that wait for other replicas
  std::uint32_t transfers = 0;              // of other servers' replicas, from here
  std::vector<const Replica*> replicas;
};

// One object: role, rank, thread, epoch, clocks, stragglers, tables, replication, rates and
// counters. Clocks, what waits and how stale replies were are of the shards whose head is here,
// tables of all replicas.
std::string StatusJson(const StatusView& view);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATUS_JSON_H_
