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
  ForEachOpen([&](Lane&, Request& request) {
    if (request.operation.get() != &operation) return;
    if (request.times_sent == 0 && proto::HasPush(request.op)) ++operation.pushes_out;
    Fill(request);
    if (!runtime::Planted<"array-posted-after-the-end">()) request.receive.Revoke();
    request.operation.reset();
    request.abandoned = true;
    abandoned_bytes_ += request.bytes;
    if (request.piece.refundable != nullptr) request.piece.refundable->given = {};
    if (!operation.memory) return;
    for (runtime::Buffer& frame : request.piece.payload) frame = retained_memory_.CopyOf(frame);
  });
}

// A number that is in use has to be answered: ticks, and the requests after it, may speak of it.
bool Requests::HasNumber(const Operation& operation) const {
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return std::any_of(lane.open.begin(), lane.open.end(), [&](const auto& request) {
      return request != nullptr && request->operation.get() == &operation;
    });
  });
}

void Requests::Forget(const Operation& operation) {
  for (Lane& lane : lanes_) {
    for (auto it = lane.unnumbered.begin(); it != lane.unnumbered.end();) {
      Request* const request = it->second.get();
      if (request->operation.get() != &operation) {
        ++it;
        continue;
      }
      Withdraw(lane, request);
      Retire(*request);
      it = lane.unnumbered.erase(it);
    }
  }
}

void Requests::Clear() {
  NumberAll();
  for (Lane& lane : lanes_) {
    for (const std::unique_ptr<Request>& request : lane.open) {
      if (request == nullptr) continue;
      Withdraw(lane, request.get());
      Retire(*request);
    }
    lane.open.clear();
    lane.last = {};
  }
  resend_.Clear();
}

std::string Requests::DescribeRequestWait(const Lane& lane, const Request& request) const {
  if (lane.link == nullptr) {
    return absl::StrCat("a server for shard ", request.piece.shard, ", which has none now");
  }
  const Link& link = *lane.link;
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
    absl::StrAppend(&text, " for ", Spoken(loop_->Now() - request.first_sent), ", sent ",
                    request.times_sent, request.times_sent == 1 ? " time" : " times");
  }
  return text + link.Silence(loop_->Now());
}

std::string Requests::DescribeWait(const Operation& operation) {
  constexpr int kNamedMax = 4;
  std::vector<const Link*> links;
  std::string names;
  ForEachOpen([&](const Lane& lane, const Request& request) {
    if (request.operation.get() != &operation) return;
    if (std::find(links.begin(), links.end(), lane.link) != links.end()) return;
    links.push_back(lane.link);
    if (links.size() > kNamedMax) return;
    absl::StrAppend(&names, names.empty() ? "" : ", ", DescribeRequestWait(lane, request));
  });
  if (links.size() > kNamedMax) {
    absl::StrAppend(&names, " and ", links.size() - kNamedMax, " more server threads");
  }
  return absl::StrCat(operation.unanswered, " of ", operation.requests,
                      " requests are unanswered; waited for ", names);
}

}  // namespace leeway::worker
