// The connection to one data thread of one server, and what the worker keeps for it.
//
// Made by Servers, which keeps the connection up; lives as long as the core, on its loop. Each part
// of the worker has the fields that are named after it.
#ifndef LEEWAY_WORKER_LINKS_LINK_H_
#define LEEWAY_WORKER_LINKS_LINK_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/loop/timer.h"
#include "van/send_pacer.h"
#include "van/van.h"
#include "worker/links/push_batch.h"
#include "worker/operations/request.h"

namespace leeway::worker {

// The connection to one data thread of one server. Lives as long as the core.
struct Link {
  std::uint32_t server_rank = 0;
  std::uint32_t thread = 0;
  // The server process, as the map says. Another process may take a server's rank.
  std::uint32_t node = 0;
  std::uint64_t incarnation = 0;  // 0: the map does not say
  std::uint64_t generation = 0;   // counts the processes this link has led to
  std::string address;
  bool alive = true;  // the map says that the server is
  std::string death;  // why it is not
  van::PeerId peer = 0;
  bool up = false;
  absl::Status trouble;  // why it is not up, where that is known
  absl::Time heard = absl::InfinitePast();
  absl::Time down_since = absl::InfinitePast();            // while it is not up
  absl::Time reported_unreachable = absl::InfinitePast();  // in the log; past: not since it was up
  absl::Duration reconnect_delay;
  std::unique_ptr<runtime::Timer> reconnect;
  PushBatch batch;  // small pushes that wait to be sent together (Servers)

  // For ShardQueue and RequestSender.
  std::set<Request*, SentSooner> queue;
  std::uint64_t in_flight_bytes = 0;  // pushes sent and unanswered
  van::SendPacer pacer;               // bytes that the transport has not reported sent

  // For Ticker (control/ticker.h).
  std::vector<std::uint32_t> shards;  // of which the thread is the head, ascending
  std::uint64_t clock_acked = 0;      // in the newest epoch
  int ticks_unanswered = 0;
  absl::Time tick_due = absl::InfiniteFuture();
  absl::Duration tick_delay;

  std::string Describe() const;               // "server 1 thread 0 (tcp://10.0.0.7:4001)"
  std::string Silence(absl::Time now) const;  // ", last heard 3s ago"; "": never
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_LINKS_LINK_H_
