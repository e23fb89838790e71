#include "compat/core/process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compat/core/call_format.h"
#include "compat/core/desk.h"
#include "compat/core/nodes.h"
#include "compat/core/server_calls.h"
#include "compat/core/settings.h"
#include "compat/ps/kv_app.h"
#include "nlohmann/json.hpp"
#include "node/plugins.h"
#include "ps/control/run_server.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "scheduler/control/scheduler.h"
#include "van/mixed/mixed_van.h"

namespace leeway::compat {
namespace {

using ::ps::internal::Fail;

// The link of the scheduler's own process: commands go to its loop.
class SchedulerLink final : public Link {
 public:
  explicit SchedulerLink(std::map<std::string, Desk::Handler> commands)
      : commands_(std::move(commands)) {}

  void Open(runtime::Loop* loop) {
    const std::lock_guard lock(mutex_);
    loop_ = loop;
    for (runtime::Task& task : std::exchange(early_, {})) loop_->Post(std::move(task));
  }
  // On the loop: it and the desk go.
  void Close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
    closed_ = true;
  }

  void Ask(std::string command, std::vector<std::string> arguments, Done done) override {
    runtime::Task task = [this, command = std::move(command), arguments = std::move(arguments),
                          done = std::make_shared<Done>(std::move(done))] {
      commands_.at(command)(arguments,
                            [done](const absl::StatusOr<std::string>& json) { (*done)(json); });
    };
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    loop_ == nullptr ? early_.push_back(std::move(task)) : loop_->Post(std::move(task));
  }

 private:
  const std::map<std::string, Desk::Handler> commands_;
  std::mutex mutex_;
  runtime::Loop* loop_ = nullptr;
  bool closed_ = false;
  std::vector<runtime::Task> early_;
};

Role RoleOf(const Config& config) { return config.role; }

}  // namespace

void FailUnlessLeaving(const std::string& what, const absl::Status& why) {
  if (Process::Get().leaving()) return;
  Fail(absl::StrCat(what, ": ", std::string(why.message())));
}

// Never destroyed: threads of the library may run until the process ends.
Process& Process::Get() {
  static Process* const process = new Process;
  return *process;
}

// ---- settings ----

void Process::ReadConfig() {
  absl::StatusOr<Config> config = compat::ReadConfig();
  if (!config.ok()) Fail(std::string(config.status().message()));
  config_ = *std::move(config);
}

Config Process::config() {
  const std::lock_guard lock(mutex_);
  if (!config_.has_value()) ReadConfig();
  return *config_;
}
Role Process::role() {
  const std::lock_guard lock(mutex_);
  if (!config_.has_value()) ReadConfig();
  return RoleOf(*config_);
}
std::uint32_t Process::num_servers() {
  const std::lock_guard lock(mutex_);
  if (!config_.has_value()) ReadConfig();
  return config_->num_servers;
}
std::uint32_t Process::num_workers() {
  const std::lock_guard lock(mutex_);
  if (!config_.has_value()) ReadConfig();
  return config_->num_workers;
}

int Process::node_id() {
  const std::lock_guard lock(mutex_);
  return node_;
}
bool Process::is_recovery() {
  const std::lock_guard lock(mutex_);
  return recovery_;
}
bool Process::leaving() {
  const std::lock_guard lock(mutex_);
  return leaving_;
}
std::vector<int> Process::DeadNodes() {
  const std::lock_guard lock(mutex_);
  return dead_;
}
std::shared_ptr<Link> Process::link() {
  const std::lock_guard lock(mutex_);
  if (link_ == nullptr) Fail("ps::Start has not been called");
  return link_;
}

// ---- the beginning ----

void Process::Start(int customer_id, bool do_barrier, int rank) {
  bool first = false;
  Role role = Role::kUnknown;
  {
    const std::lock_guard lock(mutex_);
    first = link_ == nullptr;
    if (first) {
      ReadConfig();
      if (const auto level = runtime::ParseLogLevel(config_->log_level)) {
        runtime::SetLogLevel(*level);
      }
      host_ = runtime::NewRealHost(absl::ZeroDuration());
      messages_ = host_->Spawn("ps messages");
      if (config_->role == Role::kScheduler) {
        StartScheduler();
      } else {
        link_ = std::make_shared<DeskClient>(*config_);
      }
    }
    role = config_->role;
  }
  if (role == Role::kServer && first) StartServer(rank);
  if (role == Role::kWorker) StartWorker(customer_id, rank);
  if (role == Role::kScheduler && first) {
    const std::lock_guard lock(mutex_);
    node_ = kSchedulerNode;
  }
  const int node = NodeOf(customer_id);
  setenv("DMLC_RANK", node == kSchedulerNode ? "0" : absl::StrCat(RankOf(node)).c_str(), 1);
  if (first || role == Role::kWorker) ReceiveFor(node, 0);
  if (do_barrier) Barrier(customer_id, kEveryNode, true);
}

// Under the lock.
void Process::StartScheduler() {
  const Config config = *config_;
  auto desk = std::make_shared<Desk>(config.num_servers, config.num_workers);
  auto link = std::make_shared<SchedulerLink>(desk->Commands());
  link_ = link;
  over_.reset();
  scheduler::Additions additions{.on_start = [link](runtime::Loop* loop) { link->Open(loop); },
                                 .commands = desk->Commands(),
                                 .on_map =
                                     [this, desk](const proto::ClusterMap& map) {
                                       desk->OnMap(map);
                                       const std::lock_guard lock(mutex_);
                                       dead_ = desk->Dead();
                                       complete_ = complete_ || map.epoch > 0;
                                     },
                                 .on_end = [link] { link->Close(); }};
  role_thread_ = std::thread([this, config, additions = std::move(additions)] {
    const absl::Status status = scheduler::RunScheduler(config, additions);
    const std::lock_guard lock(mutex_);
    // That nodes have died is for people to know; where the cluster could go on, it has.
    if (!status.ok() && !complete_) {
      Fail(absl::StrCat("the scheduler: ", std::string(status.message())));
    }
    if (!status.ok()) runtime::LogWarning("the scheduler: ", status.message());
    over_ = status;
    changed_.notify_all();
  });
}

void Process::StartServer(int rank) {
  Config config = this->config();
  if (rank >= 0) config.rank = static_cast<std::uint32_t>(rank);
  RegisterServerHandler();
  {
    const std::lock_guard lock(mutex_);
    over_.reset();
  }
  role_thread_ = std::thread([this, config] { RunServerHere(config); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return node_ != 0 || over_.has_value(); });
}

// On the thread of the server.
void Process::RunServerHere(const Config& config) {
  int signal = 0;
  const absl::Status status =
      leeway::ps::RunServer(config, {.on_welcome =
                                         [this](const proto::Welcome& welcome) {
                                           const std::lock_guard lock(mutex_);
                                           node_ = ServerNode(welcome.rank);
                                           changed_.notify_all();
                                         },
                                     .on_signal = [&signal](int number) { signal = number; }});
  // The server has left in order; now the signal has the effect that it has for this program.
  if (signal != 0) kill(getpid(), signal);
  const std::lock_guard lock(mutex_);
  if (!status.ok() && signal == 0) {
    Fail(absl::StrCat("the server: ", std::string(status.message())));
  }
  over_ = status;
  changed_.notify_all();
}

void Process::StartWorker(int customer_id, int rank) {
  Config config = this->config();
  if (rank >= 0) config.rank = static_cast<std::uint32_t>(rank);
  node::LoadCodecPlugins(config.plugins);
  worker::Session::World world;
  world.owned_host = runtime::NewRealHost(absl::Microseconds(config.busy_poll_us));
  world.owned_factory = van::NewFactory(config);
  world.host = world.owned_host.get();
  world.factory = world.owned_factory.get();
  absl::StatusOr<std::shared_ptr<worker::Session>> session =
      worker::Session::Connect(config, std::move(world));
  if (!session.ok()) {
    Fail(absl::StrCat("joining the cluster: ", std::string(session.status().message())));
  }
  const std::lock_guard lock(mutex_);
  if (sessions_.empty()) {
    first_customer_ = customer_id;
    node_ = WorkerNode((*session)->rank());
  }
  sessions_[customer_id] = *std::move(session);
}

std::shared_ptr<worker::Session> Process::SessionOf(int customer_id) {
  const std::lock_guard lock(mutex_);
  if (sessions_.empty()) Fail("a worker's request before ps::Start, or after ps::Finalize");
  const auto own = sessions_.find(customer_id);
  return own == sessions_.end() ? sessions_.at(first_customer_) : own->second;
}

int Process::NodeOf(int customer_id) {
  const std::lock_guard lock(mutex_);
  const auto own = sessions_.find(customer_id);
  return own == sessions_.end() ? node_ : WorkerNode(own->second->rank());
}

// ---- barriers and the end ----

void Process::Barrier(int customer_id, int group, bool start) {
  const Config config = this->config();
  const std::vector<int> nodes = NodesOf(group, config.num_servers, config.num_workers);
  const int node = NodeOf(customer_id);
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
    Fail(absl::StrCat("a barrier of group ", group, ": node ", node, " is not one of the group"));
  }
  if (nodes.size() == 1) return;
  OpenAll();
  auto answer = std::make_shared<std::optional<absl::StatusOr<std::string>>>();
  link()->Ask(kBarrierCommand, {absl::StrCat(node), absl::StrCat(group), start ? "start" : ""},
              [this, answer](const absl::StatusOr<std::string>& json) {
                const std::lock_guard lock(mutex_);
                *answer = json;
                changed_.notify_all();
              });
  std::unique_lock lock(mutex_);
  const std::uint64_t life = life_;
  changed_.wait(
      lock, [&] { return answer->has_value() || over_.has_value() || leaving_ || life_ != life; });
  if (!answer->has_value()) return;  // the cluster has ended
  if (!(*answer)->ok() && !leaving_) {
    Fail(absl::StrCat("a barrier of group ", group, ": ",
                      std::string((*answer)->status().message())));
  }
  if (start && (*answer)->ok() && (**answer)->find("late") != std::string::npos) recovery_ = true;
}

void Process::SetExitCallback(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  exit_callback_ = std::move(callback);
}

void Process::Finalize(int customer_id, bool do_barrier) {
  if (do_barrier) Barrier(customer_id, kEveryNode);
  if (customer_id == 0) Leave();
}

void Process::Leave() {
  std::map<int, std::shared_ptr<worker::Session>> sessions;
  std::shared_ptr<Link> link;
  std::function<void()> callback;
  OpenAll();
  {
    std::unique_lock lock(mutex_);
    if (link_ == nullptr) Fail("ps::Finalize without ps::Start");
    if (role_thread_.joinable()) changed_.wait(lock, [this] { return over_.has_value(); });
    leaving_ = true;
    changed_.notify_all();
    sessions.swap(sessions_);
    link.swap(link_);
    callback.swap(exit_callback_);
  }
  if (role_thread_.joinable()) role_thread_.join();
  link.reset();
  for (const auto& [customer, session] : sessions) session->Close();
  messages_->Stop();
  messages_->Join();
  if (callback != nullptr) callback();
  const std::lock_guard lock(mutex_);
  messages_.reset();
  host_.reset();
  config_.reset();
  over_.reset();
  dead_.clear();
  early_.clear();
  partial_.clear();
  complete_ = recovery_ = leaving_ = false;
  node_ = 0;
  ++life_;
}

// ---- customers and their messages ----

// What has waited for the customer goes to it under the lock, before anything newer; nothing of it
// runs here, because the customer's turns are not open yet.
void Process::Add(::ps::Customer* customer) {
  const std::lock_guard lock(mutex_);
  const std::pair<int, int> id{customer->app_id(), customer->customer_id()};
  if (!customers_.emplace(id, customer).second) {
    Fail(absl::StrCat("customer ", id.second, " of application ", id.first,
                      " exists already in this process"));
  }
  for (Mail& mail : std::exchange(early_, {})) {
    const CustomerPointer state = FindLocked(mail.app_id, mail.customer_id);
    if (state == nullptr) {
      early_.push_back(std::move(mail));
    } else {
      GiveTo(state, mail.kind, std::move(mail.deliver), std::move(mail.home));
    }
  }
}

void Process::Remove(::ps::Customer* customer) {
  const std::lock_guard lock(mutex_);
  customers_.erase({customer->app_id(), customer->customer_id()});
}

::ps::Customer* Process::Find(int app_id, int customer_id, absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = customers_.find({app_id, customer_id});
    if (found != customers_.end()) return found->second;
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return nullptr;
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(left, absl::Milliseconds(10))));
  }
}

void Process::OpenAll() {
  std::vector<CustomerPointer> states;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, customer] : customers_) {
      states.push_back(customer->state()->shared_from_this());
    }
  }
  for (const CustomerPointer& state : states) state->turns->Open(MessageKind::kSimple);
}

// Under the lock.
Process::CustomerPointer Process::FindLocked(int app_id, int customer_id) {
  if (config_.has_value() && config_->role == Role::kWorker) {
    const auto found = customers_.find({app_id, customer_id});
    return found == customers_.end() ? nullptr : found->second->state()->shared_from_this();
  }
  const auto found = customers_.lower_bound({app_id, std::numeric_limits<int>::min()});
  if (found == customers_.end() || found->first.first != app_id) return nullptr;
  return found->second->state()->shared_from_this();
}

void Process::GiveTo(const CustomerPointer& state, MessageKind kind, Delivery deliver,
                     Turns::Home home) {
  state->turns->Add(
      kind, [state, deliver = std::move(deliver)]() mutable { deliver(state); }, std::move(home));
}

void Process::Deliver(int app_id, int customer_id, MessageKind kind, Delivery deliver,
                      Turns::Home home) {
  CustomerPointer state;
  {
    const std::lock_guard lock(mutex_);
    state = FindLocked(app_id, customer_id);
    if (state == nullptr) {
      early_.push_back({app_id, customer_id, kind, std::move(deliver), std::move(home)});
      return;
    }
  }
  GiveTo(state, kind, std::move(deliver), std::move(home));
}

// ---- messages by way of the desk ----

void Process::ReceiveFor(int node, std::uint64_t taken) {
  std::shared_ptr<Link> by;
  std::uint64_t life = 0;
  {
    const std::lock_guard lock(mutex_);
    by = link_;
    life = life_;
    if (by == nullptr || leaving_) return;
  }
  by->Ask(
      kReceiveCommand, {absl::StrCat(node), absl::StrCat(taken)},
      [this, node, life](const absl::StatusOr<std::string>& json) {
        const std::lock_guard lock(mutex_);
        if (leaving_ || life_ != life || messages_ == nullptr) return;
        if (!json.ok()) {
          Fail(absl::StrCat("receiving messages: ", std::string(json.status().message())));
        }
        messages_->loop()->Post([this, node, text = *json] { ReceiveFor(node, TakeMail(text)); });
      });
}

// Delivers the messages of an answer. Returns how many there have been so far.
std::uint64_t Process::TakeMail(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("taken")) Fail("the scheduler sent no messages");
  for (const nlohmann::json& parts : json["messages"]) {
    ::ps::internal::SimpleMessage message;
    int app_id = 0;
    const bool sound = parts.is_array() && parts.size() >= kMessageBody &&
                       absl::SimpleAtoi(parts[1].get<std::string>(), &message.sender) &&
                       absl::SimpleAtoi(parts[3].get<std::string>(), &app_id) &&
                       absl::SimpleAtoi(parts[4].get<std::string>(), &message.customer_id) &&
                       absl::SimpleAtoi(parts[5].get<std::string>(), &message.head) &&
                       absl::SimpleAtoi(parts[6].get<std::string>(), &message.timestamp);
    if (!sound) Fail("a message of SimpleApp cannot be read");
    message.request = parts[2] == kRequest;
    const bool gone = parts[2] == kGone;
    std::string& body =
        partial_[{message.sender, message.request, app_id, message.customer_id, message.timestamp}];
    for (std::size_t i = kMessageBody; i < parts.size(); ++i) body += parts[i].get<std::string>();
    if (parts[7] != "last") continue;
    if (!absl::Base64Unescape(body, &message.body)) Fail("a message of SimpleApp cannot be read");
    partial_.erase(
        {message.sender, message.request, app_id, message.customer_id, message.timestamp});
    const int customer_id = message.customer_id;
    Deliver(app_id, customer_id, MessageKind::kSimple,
            [message = std::move(message), gone](const CustomerPointer& state) {
              if (!gone) state->on_message(message);
              if (!message.request) state->CountAnswer(message.timestamp);
            });
  }
  return json["taken"].get<std::uint64_t>();
}

}  // namespace leeway::compat

namespace ps::internal {

void Fail(const std::string& why) {
  leeway::runtime::LogError("ps: ", why);
  std::abort();
}

}  // namespace ps::internal
