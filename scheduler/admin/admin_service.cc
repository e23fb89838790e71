#include "scheduler/admin/admin_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leeway::scheduler {

void AdminService::Register(std::string command, Handler handler) {
  handlers_[std::move(command)] = std::move(handler);
}

void AdminService::OnAdmin(van::PeerId peer, std::uint64_t incarnation, const proto::Admin& admin) {
  const Ask ask{incarnation, admin.request};
  if (const auto answered = answered_.find(ask); answered != answered_.end()) {
    return Reply(peer, ask, answered->second);
  }
  const bool again = waiting_.contains(ask);
  if (!again && waiting_.size() >= kAsksWaitingMax) {
    return Reply(peer, ask,
                 absl::ResourceExhaustedError(
                     absl::StrCat(kAsksWaitingMax, " commands wait for the scheduler already")));
  }
  waiting_[ask] = peer;
  if (again) return;
  if (const auto handler = handlers_.find(admin.command); handler != handlers_.end()) {
    return handler->second(admin.arguments, [this, ask](const absl::StatusOr<std::string>& json) {
      Finish(ask, json);
    });
  }
  Finish(ask, absl::NotFoundError(absl::StrCat(
                  "the scheduler knows no command '", admin.command, "'; it knows ",
                  absl::StrJoin(handlers_, ", ", [](std::string* text, const auto& known) {
                    absl::StrAppend(text, known.first);
                  }))));
}

void AdminService::Finish(const Ask& ask, const absl::StatusOr<std::string>& json) {
  const auto asked = waiting_.extract(ask);
  if (asked.empty()) return;
  answered_.insert_or_assign(ask, json);
  answered_in_turn_.push_back(ask);
  if (answered_in_turn_.size() > kAnswersRememberedMax) {
    answered_.erase(answered_in_turn_.front());
    answered_in_turn_.pop_front();
  }
  Reply(asked.mapped(), ask, json);
}

void AdminService::Reply(van::PeerId peer, const Ask& ask,
                         const absl::StatusOr<std::string>& json) {
  send_(peer, {.request = ask.request, .result = json.status()}, json.ok() ? *json : "{}");
}

}  // namespace leeway::scheduler
