#include "compat/core/desk.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compat/core/nodes.h"
#include "nlohmann/json.hpp"

namespace leeway::compat {
namespace {

bool ReadNode(const Desk::Arguments& arguments, std::size_t index, int* node) {
  return index < arguments.size() && absl::SimpleAtoi(arguments[index], node);
}

absl::Status WrongArguments() {
  return absl::InvalidArgumentError("this is not how programs of ps-lite ask the scheduler");
}

std::uint64_t BytesOf(const Desk::Arguments& message) {
  std::uint64_t bytes = 0;
  for (const std::string& part : message) bytes += part.size();
  return bytes;
}

}  // namespace

std::map<std::string, Desk::Handler> Desk::Commands() {
  return {{kBarrierCommand,
           [this](const auto& arguments, const auto& answer) { Enter(arguments, answer); }},
          {kSendCommand,
           [this](const auto& arguments, const auto& answer) { Send(arguments, answer); }},
          {kReceiveCommand,
           [this](const auto& arguments, const auto& answer) { Receive(arguments, answer); }},
          {kPingCommand, [](const auto&, const auto& answer) { answer(std::string("{}")); }}};
}

void Desk::OnMap(const proto::ClusterMap& map) {
  if (map.epoch == 0) return;  // not complete: whoever is not there comes yet
  dead_.clear();
  left_.clear();
  for (const proto::ServerEntry& server : map.servers) {
    if (!server.alive) dead_.insert(ServerNode(server.rank));
  }
  for (const proto::WorkerEntry& worker : map.workers) {
    if (worker.state == proto::WorkerState::kDead) dead_.insert(WorkerNode(worker.rank));
    if (worker.state == proto::WorkerState::kLeft) left_.insert(WorkerNode(worker.rank));
  }
  FinishBarriers();
  TellOfTheGone();
}

// ---- barriers ----

void Desk::Enter(const Arguments& arguments, const Answer& answer) {
  int node = 0, group = 0;
  if (!ReadNode(arguments, 0, &node) || !ReadNode(arguments, 1, &group)) {
    return answer(WrongArguments());
  }
  const bool start = arguments.size() > 2 && arguments[2] == "start";
  if (start && started_) return answer(std::string("{\"late\":true}"));
  barriers_[group].entered[node].push_back(answer);
  FinishBarriers();
}

bool Desk::IsFull(int group, const Barrier& barrier) const {
  const std::vector<int> nodes = NodesOf(group, servers_, workers_);
  return !barrier.entered.empty() && std::all_of(nodes.begin(), nodes.end(), [&](int node) {
    return barrier.entered.contains(node) || IsGone(node);
  });
}

void Desk::FinishBarriers() {
  for (auto& [group, barrier] : barriers_) {
    if (!IsFull(group, barrier)) continue;
    if (group == kEveryNode) started_ = true;
    for (const auto& [node, answers] : std::exchange(barrier.entered, {})) {
      for (const Answer& answer : answers) answer(std::string("{}"));
    }
  }
}

// ---- messages ----

void Desk::Send(const Arguments& arguments, const Answer& answer) {
  int to = 0;
  if (!ReadNode(arguments, 0, &to) || NodesOf(to, servers_, workers_).size() != 1) {
    return answer(WrongArguments());
  }
  if (IsGone(to)) {
    return answer(absl::UnavailableError(absl::StrCat("node ", to, " is gone")));
  }
  Mailbox& mailbox = mail_[to];
  const std::uint64_t bytes = BytesOf(arguments);
  if (mailbox.bytes + bytes > kMailBytesMax) {
    return answer(absl::ResourceExhaustedError(absl::StrCat(
        "node ", to, " has ", mailbox.bytes, " bytes of messages that it has not taken")));
  }
  mailbox.messages.push_back(arguments);
  mailbox.bytes += bytes;
  NoteRequest(to, arguments);
  answer(std::string("{}"));
  Deliver(&mailbox);
}

void Desk::NoteRequest(int to, const Arguments& message) {
  int from = 0;
  if (message.size() < kMessageBody || message[7] != "last" || !ReadNode(message, 1, &from)) return;
  OpenRequest request{
      .from = from, .app = message[3], .customer = message[4], .timestamp = message[6]};
  if (message[2] == kRequest) {
    std::set<OpenRequest>& open = open_requests_[to];
    if (open.size() < kOpenRequestsMax) open.insert(std::move(request));
    return;
  }
  request.from = to;
  if (const auto open = open_requests_.find(from); open != open_requests_.end()) {
    open->second.erase(request);
  }
}

// The nodes whose requests a node has that has gone take this for its responses.
void Desk::TellOfTheGone() {
  for (auto& [node, requests] : open_requests_) {
    if (!IsGone(node)) continue;
    for (const OpenRequest& request : std::exchange(requests, {})) {
      if (IsGone(request.from)) continue;
      Mailbox& mailbox = mail_[request.from];
      Arguments message = {absl::StrCat(request.from),
                           absl::StrCat(node),
                           kGone,
                           request.app,
                           request.customer,
                           "0",
                           request.timestamp,
                           "last"};
      mailbox.bytes += BytesOf(message);
      mailbox.messages.push_back(std::move(message));
      Deliver(&mailbox);
    }
  }
}

void Desk::Receive(const Arguments& arguments, const Answer& answer) {
  int node = 0;
  std::uint64_t taken = 0;
  if (!ReadNode(arguments, 0, &node) || arguments.size() < 2 ||
      !absl::SimpleAtoi(arguments[1], &taken)) {
    return answer(WrongArguments());
  }
  Mailbox& mailbox = mail_[node];
  while (mailbox.first < taken && !mailbox.messages.empty()) {
    mailbox.bytes -= BytesOf(mailbox.messages.front());
    mailbox.messages.pop_front();
    ++mailbox.first;
  }
  mailbox.waiting = answer;
  Deliver(&mailbox);
}

void Desk::Deliver(Mailbox* mailbox) {
  if (mailbox->waiting == nullptr || mailbox->messages.empty()) return;
  nlohmann::json messages = nlohmann::json::array();
  std::uint64_t bytes = 0;
  for (const Arguments& message : mailbox->messages) {
    bytes += BytesOf(message);
    if (bytes > kMailAnswerBytesMax && !messages.empty()) break;
    messages.push_back(message);
  }
  const nlohmann::json json = {{"taken", mailbox->first + messages.size()}, {"messages", messages}};
  std::exchange(mailbox->waiting, nullptr)(json.dump());
}

}  // namespace leeway::compat
