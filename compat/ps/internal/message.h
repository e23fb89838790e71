// A Node is a process of the cluster, as Van::my_node describes this one.
#ifndef PS_INTERNAL_MESSAGE_H_
#define PS_INTERNAL_MESSAGE_H_

#include <string>

namespace ps {

struct Node {
  // JOINT, a worker and a server in one process, is not supported: StartPS refuses it.
  enum Role { SERVER, WORKER, SCHEDULER, JOINT };

  Role role = SCHEDULER;
  int id = 0;  // 0: not known yet
  int customer_id = 0;
  std::string hostname;      // of the scheduler; empty for others
  int port = 0;              // likewise
  bool is_recovery = false;  // it has come after the others had started
};

}  // namespace ps

#endif  // PS_INTERNAL_MESSAGE_H_
