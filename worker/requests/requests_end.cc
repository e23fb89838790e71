// How requests end without an answer: their operation's time is up, or all is over; and what an
// operation whose time is up says about those it waited for.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/mutants.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

void Requests::Abandon(Operation& operation) {
  if (proto::HasPush(operation.op) && operation.pushes_out == 0 &&
      (!HasNumber(operation) || runtime::Planted<"numbered-push-forgotten">())) {
    return Forget(operation);
  }
  ForEachOpen([&](ShardQueue&, Request& request) {
    if (request.operation.get() != &operation) return;
    if (request.times_sent == 0 && proto::HasPush(request.op)) ++operation.pushes_out;
    Fill(request);
    if (!runtime::Planted<"array-posted-after-the-end">()) request.receive.Revoke();
    request.operation.reset();
    SetAside(request, operation);
  });
}

// As a push alone, whose answer may take its time: with an answer like that the head has the push,
// but replicas may not, so that it would be lost with the head.
void Requests::AskOn(ShardQueue& queue, Request& request, const Link& link,
                     const proto::Reply& reply) {
  request.op = proto::Op::kPush;
  request.receive.Revoke();
  request.resend_delay = resend_interval_;
  if (request.operation != nullptr) {
    SetAside(request, *request.operation);
  }
  Enqueue(queue, &request);
  if (request.operation != nullptr) on_answer_(request, link, reply, {});
}

// Its operation ends: what it needs of the user's is copied.
void Requests::SetAside(Request& request, const Operation& operation) {
  request.abandoned = true;
  abandoned_bytes_ += request.bytes;
  if (request.piece.refundable != nullptr) request.piece.refundable->given = {};
  if (!operation.memory || runtime::Planted<"abandoned-reads-user-memory">()) return;
  for (runtime::Buffer& frame : request.piece.payload) frame = retained_memory_.CopyOf(frame);
}

// A number that is in use has to be answered: ticks, and the requests after it, may speak of it.
bool Requests::HasNumber(const Operation& operation) const {
  return std::any_of(queues_.begin(), queues_.end(), [&](const ShardQueue& queue) {
    return std::any_of(queue.open.begin(), queue.open.end(), [&](const auto& request) {
      return request != nullptr && request->operation.get() == &operation;
    });
  });
}

void Requests::Forget(const Operation& operation) {
  for (ShardQueue& queue : queues_) {
    for (auto it = queue.unnumbered.begin(); it != queue.unnumbered.end();) {
      Request* const request = it->second.get();
      if (request->operation.get() != &operation) {
        ++it;
        continue;
      }
      Withdraw(queue, request);
      Retire(*request);
      it = queue.unnumbered.erase(it);
    }
  }
}

void Requests::Clear() {
  NumberAll();
  for (ShardQueue& queue : queues_) {
    for (const std::unique_ptr<Request>& request : queue.open) {
      if (request == nullptr) continue;
      Withdraw(queue, request.get());
      Retire(*request);
    }
    queue.open.clear();
    queue.last = {};
  }
  resend_.Clear();
}

std::string Requests::DescribeRequestWait(const ShardQueue& queue, const Request& request) const {
  if (queue.link == nullptr) {
    return absl::StrCat("a server for shard ", request.piece.shard, ", which has none now");
  }
  const Link& link = *queue.link;
  std::string text = link.Describe();
  if (!link.up) {
    absl::StrAppend(&text, ", which is not connected", link.trouble.ok() ? "" : ": ",
                    link.trouble.message());
  } else if (Undecided(request)) {
    absl::StrAppend(&text, ", to which nothing of clock ", request.clock,
                    " is sent before the scheduler has decided on a change of table '",
                    request.table->spec.name, "'");
  } else if (request.times_sent == 0) {
    absl::StrAppend(&text, ", to which it could not be sent yet");
  } else {
    absl::StrAppend(&text, " for ", runtime::FormatDuration(loop_->Now() - request.first_sent),
                    ", sent ", request.times_sent, request.times_sent == 1 ? " time" : " times");
  }
  return text + link.Silence(loop_->Now());
}

std::string Requests::DescribeWait(const Operation& operation) {
  constexpr int kNamedMax = 4;
  std::vector<const Link*> links;
  std::string names;
  ForEachOpen([&](const ShardQueue& queue, const Request& request) {
    if (request.operation.get() != &operation) return;
    if (std::find(links.begin(), links.end(), queue.link) != links.end()) return;
    links.push_back(queue.link);
    if (links.size() > kNamedMax) return;
    absl::StrAppend(&names, names.empty() ? "" : ", ", DescribeRequestWait(queue, request));
  });
  if (links.size() > kNamedMax) {
    absl::StrAppend(&names, " and ", links.size() - kNamedMax, " more server threads");
  }
  return absl::StrCat(operation.unanswered, " of ", operation.requests,
                      " requests are unanswered; waited for ", names);
}

}  // namespace leeway::worker
