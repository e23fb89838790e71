#include "worker/control/calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/prefixed.h"

namespace leeway::worker {

Calls::Calls(runtime::Loop* loop, Servers* servers)
    : loop_(loop), servers_(servers), look_(loop, [this] { Look(); }) {}

void Calls::Call(std::uint32_t server_rank, const std::string& handler, Frames request,
                 absl::Duration timeout, Done done) {
  Link* link = servers_->Find(server_rank, 0);
  if (link == nullptr) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("call of '", handler, "': there is no server ", server_rank)));
  }
  if (!link->alive) {
    return done(absl::UnavailableError(
        absl::StrCat("call of '", handler, "': ", link->Describe(), " is gone: ", link->death)));
  }
  const std::uint64_t number = next_++;
  const absl::Time now = loop_->Now();
  Pending& pending = pending_[number];
  pending = {.link = link,
             .handler = handler,
             .request = std::move(request),
             .started = now,
             .deadline = now + timeout,
             .done = std::move(done)};
  look_.SetBy(pending.deadline);
  if (link->up) Send(number, pending);
}

void Calls::Send(std::uint64_t number, Pending& pending) {
  const Frames request = std::exchange(pending.request, {});
  pending.sent = true;
  const absl::Status sent = servers_->Send(
      pending.link, proto::Call{.request = number, .handler = pending.handler}, request);
  if (sent.ok()) return;
  // The caller's `done` must not run within its own call.
  loop_->Post([this, alive = lifetime_.watch(), number, sent] {
    if (!alive) return;
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    Done done = std::move(found->second.done);
    pending_.erase(found);
    done(sent);
  });
}

void Calls::OnReply(const proto::CallReply& reply, std::span<const runtime::Buffer> payload) {
  const auto found = pending_.find(reply.request);
  if (found == pending_.end()) return;
  Done done = std::move(found->second.done);
  pending_.erase(found);
  if (!reply.result.ok()) return done(reply.result);
  done(Frames(payload.begin(), payload.end()));
}

template <class Which>
void Calls::End(Which&& which, const std::function<absl::Status(const Pending&)>& why) {
  std::vector<std::pair<absl::Status, Done>> ended;
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (!which(it->second)) {
      ++it;
      continue;
    }
    ended.emplace_back(
        runtime::Prefixed(absl::StrCat("call of '", it->second.handler, "'"), why(it->second)),
        std::move(it->second.done));
    it = pending_.erase(it);
  }
  for (auto& [status, done] : ended) done(status);
}

void Calls::OnLinkUp(Link* link) {
  for (auto& [number, pending] : pending_) {
    if (pending.link == link && !pending.sent) Send(number, pending);
  }
}

void Calls::OnLinkDown(Link* link, const absl::Status& why) {
  End([link](const Pending& pending) { return pending.link == link && pending.sent; },
      [&](const Pending&) {
        return absl::UnavailableError(absl::StrCat("the connection to ", link->Describe(),
                                                   " broke before the answer: ", why.message()));
      });
}

void Calls::DropServer(std::uint32_t server_rank, const absl::Status& why) {
  End([=](const Pending& pending) { return pending.link->server_rank == server_rank; },
      [&](const Pending&) { return why; });
}

void Calls::Fail(const absl::Status& why) {
  look_.Clear();
  End([](const Pending&) { return true; }, [&](const Pending&) { return why; });
}

void Calls::Look() {
  const absl::Time now = loop_->Now();
  End([now](const Pending& pending) { return pending.deadline <= now; },
      [now](const Pending& pending) {
        return absl::DeadlineExceededError(
            absl::StrCat(pending.link->Describe(), pending.link->Silence(now),
                         pending.sent ? " has not answered for " : " could not be reached for ",
                         runtime::FormatDuration(now - pending.started),
                         pending.link->trouble.ok() ? "" : ": ", pending.link->trouble.message()));
      });
  for (const auto& [number, pending] : pending_) look_.SetBy(pending.deadline);
}

}  // namespace leeway::worker
