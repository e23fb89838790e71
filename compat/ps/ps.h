// The interface of ps-lite on top of Leeway: what programs written for ps-lite include.
// docs/migrating-from-ps-lite.md says what is the same, what is better and what differs.
#ifndef PS_PS_H_
#define PS_PS_H_

#include <cstdlib>
#include <functional>
#include <string>

#include "ps/base.h"
#include "ps/kv_app.h"
#include "ps/simple_app.h"

namespace ps {

inline int NumWorkers() { return Postoffice::Get()->num_workers(); }
inline int NumServers() { return Postoffice::Get()->num_servers(); }
inline bool IsWorker() { return Postoffice::Get()->is_worker() != 0; }
inline bool IsServer() { return Postoffice::Get()->is_server() != 0; }
inline bool IsScheduler() { return Postoffice::Get()->is_scheduler() != 0; }
// Among the nodes of the same role; of a worker that of the customer that was started first.
inline int MyRank() { return Postoffice::Get()->my_rank(); }

// Joins the cluster and waits until all nodes have.
inline void Start(int customer_id, const char* argv0 = nullptr) {
  Postoffice::Get()->Start(customer_id, argv0, true);
}
inline void Start(const char* argv0 = nullptr) { Start(0, argv0); }
// Does not wait for others to call it.
inline void StartAsync(int customer_id, const char* argv0 = nullptr) {
  Postoffice::Get()->Start(customer_id, argv0, false);
}
inline void StartAsync(const char* argv0 = nullptr) { StartAsync(0, argv0); }

// Of later versions. `rank`: the wanted one; −1: any.
inline Node::Role GetRole(const std::string& role) {
  CHECK(role == "worker" || role == "server" || role == "scheduler" || role == "joint")
      << "'" << role << "' is not worker, server, scheduler or joint";
  return role == "worker"   ? Node::WORKER
         : role == "server" ? Node::SERVER
         : role == "joint"  ? Node::JOINT
                            : Node::SCHEDULER;
}
inline void StartPS(int customer_id, Node::Role role, int rank, bool do_barrier,
                    const char* argv0 = nullptr) {
  CHECK_NE(role, Node::JOINT) << "start a process for each role: 'joint' is not supported";
  setenv("DMLC_ROLE",
         role == Node::WORKER   ? "worker"
         : role == Node::SERVER ? "server"
                                : "scheduler",
         1);
  Postoffice::Get()->Start(customer_id, argv0, do_barrier, rank);
}

// Leaves the cluster, after a barrier of all nodes unless `do_barrier` is false.
inline void Finalize(int customer_id, const bool do_barrier = true) {
  Postoffice::Get()->Finalize(customer_id, do_barrier);
}
inline void Finalize(bool do_barrier) { Finalize(0, do_barrier); }
inline void Finalize() { Finalize(0, true); }
inline void Finalize(int customer_id, Node::Role, const bool do_barrier = true) {
  Finalize(customer_id, do_barrier);
}

// Called at the end of Finalize.
inline void RegisterExitCallback(const std::function<void()>& callback) {
  Postoffice::Get()->RegisterExitCallback(callback);
}

}  // namespace ps

#endif  // PS_PS_H_
