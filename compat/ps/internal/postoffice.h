// The Postoffice is this process's place in the cluster: its role and rank, the other nodes,
// barriers. Any thread.
//
// Nodes have numbers: the scheduler 1, servers 8, 10, 12, …, workers 9, 11, 13, … by rank; sums of
// kScheduler, kServerGroup and kWorkerGroup are groups of them.
#ifndef PS_INTERNAL_POSTOFFICE_H_
#define PS_INTERNAL_POSTOFFICE_H_

#include <algorithm>
#include <functional>
#include <vector>

#include "ps/base.h"
#include "ps/internal/customer.h"
#include "ps/internal/message.h"
#include "ps/internal/utils.h"
#include "ps/range.h"

namespace ps {

// What programs ask of a Van. The network is Leeway's own (LEEWAY_VAN).
class Van {
 public:
  const Node& my_node() const { return node_; }
  bool IsReady() const { return ready_; }

 private:
  friend class Postoffice;
  Node node_;
  bool ready_ = false;
};

class Postoffice {
 public:
  using Callback = std::function<void()>;

  static Postoffice* Get();

  // Joins the cluster, which the environment describes. In a worker every customer id that is
  // started is a worker of its own (DMLC_NUM_WORKER counts them), on connections of its own.
  // `do_barrier`: waits until all nodes have started. An error ends the process.
  void Start(int customer_id, const char* argv0, bool do_barrier) {
    Start(customer_id, argv0, do_barrier, -1);
  }
  void Start(int customer_id, const char* argv0, bool do_barrier, int rank);
  // Leaves it: `do_barrier`: once all nodes are here. With customer 0 the whole process; a server
  // and the scheduler then serve until all workers have left. The exit callback runs last.
  void Finalize(int customer_id, bool do_barrier = true);
  void RegisterExitCallback(const Callback& callback);

  // Waits until all living nodes of the group, of which this is one, have come to a barrier of that
  // group.
  void Barrier(int customer_id, int node_group);
  void Barrier(int node_group) { Barrier(0, node_group); }

  // The nodes of a group, or {node_id}. Fails for others.
  const std::vector<int>& GetNodeIDs(int node_id);
  // The keys of a server, by rank, as the default slicer cuts them.
  const std::vector<Range>& GetServerKeyRanges();
  // Nodes that are known to be dead: on the scheduler; elsewhere it is empty. (Leeway finds them by
  // LEEWAY_FAILURE_TIMEOUT_MS, whatever the argument is.)
  std::vector<int> GetDeadNodes(int seconds = 60);
  // Null if there is none after so many seconds.
  Customer* GetCustomer(int app_id, int customer_id, int timeout_s = 0);

  static int WorkerRankToID(int rank) { return 2 * rank + 9; }
  static int ServerRankToID(int rank) { return 2 * rank + 8; }
  static int IDtoRank(int id) { return std::max((id - 8) / 2, 0); }

  // From the environment; before Start, too.
  int num_workers();
  int num_servers();
  int is_worker();
  int is_server();
  int is_scheduler();
  int verbose();
  // After Start; before, 0.
  int my_rank();
  // Whether the others had started before this node.
  bool is_recovery();
  Van* van() { return &van_; }

 private:
  Postoffice();

  Van van_;

  DISALLOW_COPY_AND_ASSIGN(Postoffice);
};

#define PS_VLOG(x) LOG_IF(INFO, (x) <= ps::Postoffice::Get()->verbose())

}  // namespace ps

#endif  // PS_INTERNAL_POSTOFFICE_H_
