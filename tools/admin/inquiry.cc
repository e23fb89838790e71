#include "tools/admin/inquiry.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/messages.h"
#include "runtime/base/format_duration.h"
#include "runtime/loop/real_loop.h"
#include "runtime/loop/timer.h"
#include "van/mixed/mixed_van.h"

namespace leeway::tools {
namespace {

using Answers = std::vector<absl::StatusOr<std::string>>;

// Lives on a loop; another thread waits for the answers.
class Inquiry final : public van::Handler {
 public:
  Inquiry(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, const Config& config,
          Role role)
      : host_(host),
        loop_(loop),
        factory_(factory),
        config_(config),
        role_(role),
        patience_(loop, [this] {
          asked_.clear();
          FinishIfAllAnswered();
        }) {}

  // On the loop, as all calls but Wait.
  void Ask(const std::vector<std::string>& addresses, absl::Duration patience) {
    van_ = factory_->New(loop_,
                         {.role = Role::kTool,
                          .node = 0,
                          .incarnation = host_->Random(),
                          .cluster = 0,
                          .capabilities = 0},
                         van::LimitsFrom(config_), this);
    addresses_ = addresses;
    for (const std::string& address : addresses) {
      answers_.push_back(absl::DeadlineExceededError(
          absl::StrCat("no ", Name(role_), " answers at ", Shown(address), " within ",
                       runtime::FormatDuration(patience))));
    }
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      // Longer than `patience`, so that this side gives up first.
      absl::StatusOr<van::PeerId> peer = van_->Connect(addresses[i], 2 * patience);
      if (peer.ok()) {
        asked_[*peer] = i;
      } else {
        answers_[i] = peer.status();
      }
    }
    patience_.SetAfter(patience);
    FinishIfAllAnswered();
  }

  Answers Wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return is_finished_; });
    return answers_;
  }

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override {
    const auto asked = asked_.find(peer);
    if (asked == asked_.end()) return;
    if (identity.role != role_) {
      return Take(peer, absl::FailedPreconditionError(absl::StrCat(Shown(addresses_[asked->second]),
                                                                   " is a ", Name(identity.role),
                                                                   ", not a ", Name(role_))));
    }
    van::Message message;
    message.header = proto::Encode(proto::StatusRequest{1});
    if (absl::Status sent = van_->Send(peer, std::move(message)); !sent.ok()) Take(peer, sent);
  }
  void OnPeerDown(van::PeerId peer, const absl::Status& why) override {
    const auto asked = asked_.find(peer);
    if (asked == asked_.end()) return;
    Take(peer, !why.ok() ? why
                         : absl::UnavailableError(absl::StrCat(Shown(addresses_[asked->second]),
                                                               " has closed the connection")));
  }
  void OnMessage(van::PeerId peer, van::Message message) override {
    absl::StatusOr<proto::AnyMessage> any =
        proto::Decode(message.header, {message.payload.data(), message.payload.size()});
    if (!any.ok()) return Take(peer, any.status());
    if (!std::holds_alternative<proto::StatusReply>(*any)) return;
    Take(peer, std::string(message.payload[0].text()));
  }

  // The address, with the setting's name for the scheduler, whose address is a setting.
  std::string Shown(const std::string& address) const {
    return role_ == Role::kScheduler ? absl::StrCat(address, " (LEEWAY_SCHEDULER)") : address;
  }

  void Take(van::PeerId peer, absl::StatusOr<std::string> answer) {
    const auto asked = asked_.extract(peer);
    if (asked.empty()) return;
    answers_[asked.mapped()] = std::move(answer);
    FinishIfAllAnswered();
  }

  // From here on, nothing on the loop touches the answers.
  void FinishIfAllAnswered() {
    if (!asked_.empty()) return;
    patience_.Clear();
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
    finished_.notify_all();
  }

  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const Config& config_;
  const Role role_;
  std::vector<std::string> addresses_;
  std::map<van::PeerId, std::size_t> asked_;  // peers that have not answered → index of the answer
  Answers answers_;
  runtime::Timer patience_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool is_finished_ = false;  // under mutex_
  std::unique_ptr<van::Van> van_;
};

}  // namespace

Answers AskForStatus(const std::vector<std::string>& addresses, Role role, absl::Duration patience,
                     const Config& config) {
  const std::unique_ptr<runtime::Host> host = runtime::NewRealHost();
  const std::unique_ptr<van::Factory> factory = van::NewToolFactory(config);
  const std::unique_ptr<runtime::LoopRunner> runner = host->Spawn("status");
  auto inquiry = std::make_unique<Inquiry>(host.get(), runner->loop(), factory.get(), config, role);
  runner->loop()->Post([&] { inquiry->Ask(addresses, patience); });
  Answers answers = inquiry->Wait();
  runner->loop()->Post([&] {
    inquiry.reset();
    runner->Stop();
  });
  runner->Join();
  return answers;
}

}  // namespace leeway::tools
