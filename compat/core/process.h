// Process is this process's part of a cluster of programs written for ps-lite: it runs the server
// or the scheduler on a thread, connects the workers, and takes messages to the customers.
//
// One for the life of the process; any thread. An error that a program of ps-lite cannot be told of
// ends the process (ps::internal::Fail).
#ifndef LEEWAY_COMPAT_CORE_PROCESS_H_
#define LEEWAY_COMPAT_CORE_PROCESS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compat/core/customer_state.h"
#include "compat/core/desk_client.h"
#include "compat/ps/internal/customer.h"
#include "leeway/config.h"
#include "leeway/server.h"
#include "runtime/loop/loop.h"
#include "worker/client/session.h"

namespace leeway::compat {

class Process {
 public:
  static Process& Get();

  // From the environment: read when it is first asked for, and at Start.
  Config config();
  Role role();
  std::uint32_t num_servers();
  std::uint32_t num_workers();

  void Start(int customer_id, bool do_barrier, int rank);
  void Finalize(int customer_id, bool do_barrier);
  void SetExitCallback(std::function<void()> callback);
  void Barrier(int customer_id, int group, bool start = false);

  int node_id();  // 0 before Start
  bool is_recovery();
  std::vector<int> DeadNodes();

  void Add(::ps::Customer* customer);
  void Remove(::ps::Customer* customer);
  ::ps::Customer* Find(int app_id, int customer_id, absl::Duration patience);

  // The connections of a worker's customer; ends the process before Start.
  std::shared_ptr<worker::Session> SessionOf(int customer_id);
  int NodeOf(int customer_id);
  std::shared_ptr<Link> link();
  // The cluster is being left, so that requests may fail.
  bool leaving();

  using CustomerPointer = std::shared_ptr<::ps::internal::CustomerState>;
  using Delivery = absl::AnyInvocable<void(const CustomerPointer&)>;
  // Runs `deliver` when it is the customer's turn, once there is one. In servers and the scheduler
  // any customer of the application is meant. `home`: the thread that has to run it, if any.
  void Deliver(int app_id, int customer_id, MessageKind kind, Delivery deliver,
               Turns::Home home = {});

 private:
  struct Mail {
    int app_id, customer_id;
    MessageKind kind;
    Delivery deliver;
    Turns::Home home;
  };

  Process() = default;
  void ReadConfig();
  void StartScheduler();
  void StartServer(int rank);
  void StartWorker(int customer_id, int rank);
  void RunServerHere(const Config& config);
  void RunSchedulerHere(const Config& config);
  void OpenAll();
  void Leave();
  void ReceiveFor(int node, std::uint64_t taken);
  std::uint64_t TakeMail(const std::string& json);
  CustomerPointer FindLocked(int app_id, int customer_id);
  static void GiveTo(const CustomerPointer& state, MessageKind kind, Delivery deliver,
                     Turns::Home home);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Config> config_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<runtime::LoopRunner>
      messages_;                      // runs the handles of messages by way of the desk
  std::thread role_thread_;           // of a server or scheduler
  std::optional<absl::Status> over_;  // how that has ended
  std::vector<int> dead_;             // on the scheduler
  bool complete_ = false;             // likewise: all nodes have been there
  int node_ = 0;
  bool recovery_ = false;
  bool leaving_ = false;
  std::uint64_t life_ = 1;                                    // counts Finalize
  std::map<int, std::shared_ptr<worker::Session>> sessions_;  // by customer
  int first_customer_ = 0;                                    // of those
  std::map<std::pair<int, int>, ::ps::Customer*> customers_;  // by application and customer
  std::vector<Mail> early_;                                   // for customers to come
  std::function<void()> exit_callback_;
  // Bodies that have come in part, by sender, whether they are a request's, application, customer
  // and timestamp. On the loop of messages_.
  std::map<std::tuple<int, bool, int, int, int>, std::string> partial_;
};

// Whether what failed is no error: the cluster is being left. Otherwise ends the process.
void FailUnlessLeaving(const std::string& what, const absl::Status& why);

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_PROCESS_H_
