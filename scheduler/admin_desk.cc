#include "scheduler/admin_desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leeway::scheduler {

void AdminDesk::Register(std::string command, Handler handler) {
  handlers_[std::move(command)] = std::move(handler);
}

void AdminDesk::OnAdmin(van::PeerId peer, const proto::Admin& admin) {
  const Ask ask{peer, admin.request};
  if (waiting_.contains(ask)) return;
  const bool full = waiting_.size() >= kAsksWaitingMax;
  waiting_.insert(ask);
  if (full) {
    Answer(ask, absl::ResourceExhaustedError(
                    absl::StrCat(kAsksWaitingMax, " commands wait for the scheduler already")));
  } else if (const auto handler = handlers_.find(admin.command); handler != handlers_.end()) {
    handler->second(ask, admin.arguments);
  } else {
    Answer(ask, absl::NotFoundError(absl::StrCat(
                    "the scheduler knows no command '", admin.command, "'; it knows ",
                    absl::StrJoin(handlers_, ", ", [](std::string* text, const auto& known) {
                      absl::StrAppend(text, known.first);
                    }))));
  }
}

void AdminDesk::OnPeerDown(van::PeerId peer) {
  std::erase_if(waiting_, [peer](const Ask& ask) { return ask.peer == peer; });
}

void AdminDesk::Answer(const Ask& ask, const absl::StatusOr<std::string>& json) {
  if (waiting_.erase(ask) == 0) return;
  send_(ask.peer, {.request = ask.request, .result = json.status()}, json.value_or(""));
}

}  // namespace leeway::scheduler
