// How requests end without an answer: their operation's time is up, or all is over; and what an
// operation whose time is up says about those it waited for.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/requests.h"
#include "worker/spoken_duration.h"

namespace leeway::worker {

void Requests::Abandon(const Operation& operation) {
  ForEachOpen([&](Lane&, Request& request) {
    if (request.operation.get() != &operation) return;
    Fill(request);
    request.receive.Revoke();
    request.operation.reset();
    request.abandoned = true;
    abandoned_bytes_ += request.bytes;
    if (!operation.memory) return;
    for (runtime::Buffer& frame : request.piece.payload) frame = retained_memory_.CopyOf(frame);
  });
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
                    " is sent before the scheduler has decided on the codec of table '",
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
