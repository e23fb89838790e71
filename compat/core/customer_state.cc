#include "compat/core/customer_state.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compat/core/process.h"
#include "compat/ps/kv_app.h"

namespace ps::internal {

int CustomerState::Begin(int answers) {
  const std::lock_guard lock(mutex_);
  Request& request = requests_[next_];
  request.needed = answers;
  if (answers == 0) requests_.erase(next_);
  return next_++;
}

void CustomerState::CountAnswer(int timestamp, int count) {
  Request over;  // what it holds goes outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(timestamp);
  if (found == requests_.end()) return;
  found->second.answers += count;
  if (found->second.answers < found->second.needed) return;
  over = std::move(found->second);
  requests_.erase(found);
  finished_.notify_all();
}

int CustomerState::Answers(int timestamp) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(timestamp);
  return found == requests_.end() ? Postoffice::Get()->num_servers() : found->second.answers;
}

void CustomerState::WaitBy(int timestamp, std::shared_ptr<leeway::worker::Session> by,
                           std::vector<leeway::Ticket> tickets) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(timestamp);
  if (found == requests_.end()) return;
  found->second.session = std::move(by);
  found->second.tickets = std::move(tickets);
}

void CustomerState::Wait(int timestamp) {
  std::unique_lock lock(mutex_);
  const auto found = requests_.find(timestamp);
  if (found == requests_.end()) return;
  const std::shared_ptr<leeway::worker::Session> by = found->second.session;
  const std::vector<leeway::Ticket> tickets = std::exchange(found->second.tickets, {});
  if (by != nullptr && !tickets.empty()) {
    lock.unlock();
    const absl::Status status = by->Wait(tickets);
    // Other errors have ended the process where the request failed.
    if (absl::IsFailedPrecondition(status)) {
      Fail(absl::StrCat("Wait of request ", timestamp, ": ", std::string(status.message())));
    }
    lock.lock();
  }
  finished_.wait(lock, [&] { return !requests_.contains(timestamp); });
}

void CustomerState::Keep(const CallId& id, leeway::Responder responder) {
  std::optional<leeway::Responder> before;  // of a worker that has restarted: dropped unlocked
  const std::lock_guard lock(mutex_);
  const auto found = open_calls_.find(id);
  if (found == open_calls_.end()) {
    open_calls_.emplace(id, std::move(responder));
  } else {
    before = std::exchange(found->second, std::move(responder));
  }
}

std::optional<leeway::Responder> CustomerState::Take(const CallId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = open_calls_.find(id);
  if (found == open_calls_.end()) return std::nullopt;
  std::optional<leeway::Responder> responder = std::move(found->second);
  open_calls_.erase(found);
  return responder;
}

}  // namespace ps::internal

namespace ps {

using leeway::compat::Process;

Customer::Customer(int app_id, int customer_id, OnMessage on_message)
    : state_(
          std::make_shared<internal::CustomerState>(app_id, customer_id, std::move(on_message))) {
  Process::Get().Add(this);
}

Customer::~Customer() {
  Process::Get().Remove(this);
  state_->turns->Close();
}

int Customer::app_id() const { return state_->app_id; }
int Customer::customer_id() const { return state_->customer_id; }

int Customer::NewRequest(int recver) {
  return state_->Begin(static_cast<int>(Postoffice::Get()->GetNodeIDs(recver).size()));
}
void Customer::WaitRequest(int timestamp) {
  state_->turns->Open(leeway::compat::MessageKind::kSimple);
  state_->Wait(timestamp);
}
int Customer::NumResponse(int timestamp) { return state_->Answers(timestamp); }
void Customer::AddResponse(int timestamp, int num) { state_->CountAnswer(timestamp, num); }

}  // namespace ps
