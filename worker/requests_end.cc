// How requests end without an answer: their operation's time is up, their server is dead, or all is
// over; and what an operation whose time is up says about those it waited for.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/requests.h"
#include "worker/spoken_duration.h"

namespace leeway::worker {

void Requests::Abandon(const Operation& operation) {
  for (Lane& lane : lanes_) {
    for (const std::unique_ptr<Request>& slot : lane.open) {
      if (slot == nullptr || slot->operation.get() != &operation) continue;
      Request& request = *slot;
      request.operation.reset();
      abandoned_bytes_ += request.bytes;
      if (!operation.memory) continue;
      for (runtime::Buffer& frame : request.piece.payload) {
        frame = runtime::Buffer::CopyOf(frame.data(), frame.size());
      }
    }
  }
}

std::vector<std::shared_ptr<Operation>> Requests::DropServer(std::uint32_t server_rank) {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Operation>>> found;
  for (Lane& lane : lanes_) {
    if (lane.link == nullptr || lane.link->server_rank != server_rank) continue;
    for (const std::unique_ptr<Request>& request : lane.open) {
      if (request == nullptr) continue;
      Withdraw(lane, request.get());
      Retire(*request);
      if (request->operation != nullptr) found.emplace_back(request->order, request->operation);
    }
    lane.open.clear();
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::shared_ptr<Operation>> operations;
  for (auto& [order, operation] : found) {
    if (std::find(operations.begin(), operations.end(), operation) == operations.end()) {
      operations.push_back(std::move(operation));
    }
  }
  return operations;
}

void Requests::Clear() {
  for (Lane& lane : lanes_) {
    for (const std::unique_ptr<Request>& request : lane.open) {
      if (request == nullptr) continue;
      Withdraw(lane, request.get());
      Retire(*request);
    }
    lane.open.clear();
  }
  resend_.Clear();
}

std::string Requests::DescribeWait(const Operation& operation) const {
  constexpr int kNamedMax = 4;
  std::vector<const Link*> links;
  std::string names;
  for (const Lane& lane : lanes_) {
    for (const std::unique_ptr<Request>& request : lane.open) {
      if (request == nullptr || request->operation.get() != &operation) continue;
      if (lane.link == nullptr || std::find(links.begin(), links.end(), lane.link) != links.end()) {
        continue;
      }
      links.push_back(lane.link);
      if (links.size() > kNamedMax) continue;
      absl::StrAppend(&names, names.empty() ? "" : ", ", lane.link->Describe());
      if (!lane.link->up) {
        absl::StrAppend(&names, ", which is not connected", lane.link->trouble.ok() ? "" : ": ",
                        lane.link->trouble.message());
      } else if (request->times_sent == 0) {
        absl::StrAppend(&names, ", to which it could not be sent yet");
      } else {
        absl::StrAppend(&names, " for ", Spoken(loop_->Now() - request->first_sent), ", sent ",
                        request->times_sent, request->times_sent == 1 ? " time" : " times");
      }
    }
  }
  if (links.size() > kNamedMax) {
    absl::StrAppend(&names, " and ", links.size() - kNamedMax, " more server threads");
  }
  return absl::StrCat(operation.unanswered, " of ", operation.requests,
                      " requests are unanswered; waited for ", names);
}

}  // namespace leeway::worker
