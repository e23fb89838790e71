// The state that the parts of one data thread share: its place in the cluster, the newest map, the
// workers, connections and replicas, and what is counted.
//
// One per data thread, owned by DataThread; the parts (Requests, Ticks, …) point to it. Lives on
// the thread's loop.
#ifndef LEEWAY_PS_DATA_STATE_THREAD_STATE_H_
#define LEEWAY_PS_DATA_STATE_THREAD_STATE_H_

#include <cstdint>
#include <memory>

#include "proto/messages/messages.h"
#include "ps/data/state/connections.h"
#include "ps/data/state/thread_replicas.h"
#include "ps/data/state/workers.h"
#include "ps/replication/server_links.h"
#include "ps/table/counters.h"
#include "runtime/loop/loop.h"

namespace leeway::ps {

struct ThreadState {
  ThreadState(runtime::Loop* its_loop, std::uint32_t index, absl::Duration connect_timeout,
              ReplicaHost* host)
      : loop(its_loop),
        thread(index),
        links(connect_timeout),
        connections(its_loop, &counters),
        replicas(its_loop, &counters, host, &connections) {}
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  runtime::Loop* const loop;
  const std::uint32_t thread;  // among the server's data threads
  std::uint64_t cluster = 0;
  std::uint32_t server_rank = 0;
  std::shared_ptr<const proto::ClusterMap> map =
      std::make_shared<const proto::ClusterMap>();  // never null
  Counters counters;
  Workers workers;
  Links links;
  Connections connections;
  ThreadReplicas replicas;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATE_THREAD_STATE_H_
