#include "compat/ps/internal/postoffice.h"

#include <map>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "compat/core/nodes.h"
#include "compat/core/process.h"
#include "compat/core/settings.h"
#include "compat/ps/kv_app.h"

namespace ps {

using leeway::Role;
using leeway::compat::Process;

Postoffice::Postoffice() = default;

// Never destroyed: other statics may use it at the end.
Postoffice* Postoffice::Get() {
  static Postoffice* const postoffice = new Postoffice;
  return postoffice;
}

void Postoffice::Start(int customer_id, const char* argv0, bool do_barrier, int rank) {
  dmlc::InitLogging(argv0);
  Process::Get().Start(customer_id, do_barrier, rank);
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  Node& node = van_.node_;
  node.role = is_worker() ? Node::WORKER : is_server() ? Node::SERVER : Node::SCHEDULER;
  node.id = Process::Get().node_id();
  node.customer_id = customer_id;
  node.is_recovery = Process::Get().is_recovery();
  van_.ready_ = true;
}

void Postoffice::Finalize(int customer_id, bool do_barrier) {
  Process::Get().Finalize(customer_id, do_barrier);
}
void Postoffice::RegisterExitCallback(const Callback& callback) {
  Process::Get().SetExitCallback(callback);
}
void Postoffice::Barrier(int customer_id, int node_group) {
  Process::Get().Barrier(customer_id, node_group);
}

// The lists stay where they are for the life of the process.
const std::vector<int>& Postoffice::GetNodeIDs(int node_id) {
  static std::mutex& mutex = *new std::mutex;
  static auto& lists = *new std::map<std::vector<std::uint32_t>, std::vector<int>>;
  const std::uint32_t servers = Process::Get().num_servers();
  const std::uint32_t workers = Process::Get().num_workers();
  const std::lock_guard lock(mutex);
  std::vector<int>& list = lists[{static_cast<std::uint32_t>(node_id), servers, workers}];
  if (list.empty()) list = leeway::compat::NodesOf(node_id, servers, workers);
  if (list.empty()) internal::Fail(absl::StrCat("there is no node or group ", node_id));
  return list;
}

const std::vector<Range>& Postoffice::GetServerKeyRanges() {
  static std::mutex& mutex = *new std::mutex;
  static auto& lists = *new std::map<std::uint32_t, std::vector<Range>>;
  const std::uint32_t servers = Process::Get().num_servers();
  const std::lock_guard lock(mutex);
  std::vector<Range>& ranges = lists[servers];
  for (std::uint32_t i = 0; ranges.size() < servers; ++i) {
    ranges.emplace_back(kMaxKey / servers * i, kMaxKey / servers * (i + 1));
  }
  return ranges;
}

std::vector<int> Postoffice::GetDeadNodes(int /*seconds*/) { return Process::Get().DeadNodes(); }

Customer* Postoffice::GetCustomer(int app_id, int customer_id, int timeout_s) {
  return Process::Get().Find(app_id, customer_id, absl::Seconds(timeout_s));
}

int Postoffice::num_workers() { return static_cast<int>(Process::Get().num_workers()); }
int Postoffice::num_servers() { return static_cast<int>(Process::Get().num_servers()); }
int Postoffice::is_worker() { return Process::Get().role() == Role::kWorker ? 1 : 0; }
int Postoffice::is_server() { return Process::Get().role() == Role::kServer ? 1 : 0; }
int Postoffice::is_scheduler() { return Process::Get().role() == Role::kScheduler ? 1 : 0; }
int Postoffice::verbose() { return GetEnv("PS_VERBOSE", 0); }
int Postoffice::my_rank() { return IDtoRank(Process::Get().node_id()); }
bool Postoffice::is_recovery() { return Process::Get().is_recovery(); }

}  // namespace ps
