// `leeway status`: asks a running scheduler what it knows.
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/codec.h"
#include "proto/messages.h"
#include "runtime/address.h"
#include "runtime/real_loop.h"
#include "tools/commands.h"
#include "tools/role_config.h"
#include "van/zmq/zmq_van.h"

namespace leeway::tools {
namespace {

constexpr absl::Duration kConnectPatience = absl::Seconds(10);
constexpr absl::Duration kAnswerPatience = absl::Seconds(15);  // connecting included

// One question and its answer. Lives on a loop.
class Question final : public van::Handler {
 public:
  Question(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, const Config& config)
      : loop_(loop),
        van_(factory->New(loop,
                          {.role = Role::kTool,
                           .node = 0,
                           .incarnation = host->Random(),
                           .cluster = 0,
                           .capabilities = 0},
                          van::LimitsFrom(config), this)) {}

  void Ask(const std::string& address) {
    address_ = address;
    absl::StatusOr<van::PeerId> peer = van_->Connect(address, kConnectPatience);
    if (!peer.ok()) return Finish(peer.status());
    timer_ = loop_->After(kAnswerPatience, [this] {
      Finish(absl::DeadlineExceededError(absl::StrCat("no answer from the scheduler at ", address_,
                                                      " (LEEWAY_SCHEDULER) within ",
                                                      absl::FormatDuration(kAnswerPatience))));
    });
  }

  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override {
    if (identity.role != Role::kScheduler) {
      return Finish(absl::FailedPreconditionError(absl::StrCat(
          address_, " (LEEWAY_SCHEDULER) is a ", Name(identity.role), ", not a scheduler")));
    }
    van::Message message;
    message.header = proto::Encode(proto::StatusRequest{1});
    if (absl::Status status = van_->Send(peer, std::move(message)); !status.ok()) Finish(status);
  }
  void OnPeerDown(van::PeerId, const absl::Status& why) override {
    Finish(why.ok() ? absl::UnavailableError(absl::StrCat(address_, " has hung up")) : why);
  }
  void OnMessage(van::PeerId, van::Message message) override {
    absl::StatusOr<proto::AnyMessage> any =
        proto::Decode(message.header, {message.payload.data(), message.payload.size()});
    if (!any.ok()) return Finish(any.status());
    if (!std::holds_alternative<proto::StatusReply>(*any)) return;
    Finish(std::string(message.payload[0].text()));
  }

  absl::StatusOr<std::string> Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return answer_.has_value(); });
    return *answer_;
  }

 private:
  void Finish(absl::StatusOr<std::string> answer) {
    loop_->Cancel(timer_);
    const std::lock_guard lock(mutex_);
    if (answer_.has_value()) return;
    answer_ = std::move(answer);
    answered_.notify_all();
  }

  runtime::Loop* const loop_;
  std::string address_;
  runtime::TimerId timer_ = runtime::TimerId::kNone;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<absl::StatusOr<std::string>> answer_;  // the first one; under mutex_
  std::unique_ptr<van::Van> van_;
};

}  // namespace

int RunStatusCommand(const RoleCommand& command) {
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, command);
  if (!config.ok()) return Complain(config.status());
  const absl::StatusOr<std::string> address = runtime::NormalizeAddress(config->scheduler);
  if (!address.ok()) return Complain(address.status());

  const std::unique_ptr<runtime::Host> host = runtime::NewRealHost();
  const std::unique_ptr<van::Factory> factory = van::NewZmqFactory();
  const std::unique_ptr<runtime::LoopRunner> runner = host->Spawn("status");
  auto question = std::make_unique<Question>(host.get(), runner->loop(), factory.get(), *config);
  runner->loop()->Post([&] { question->Ask(*address); });
  const absl::StatusOr<std::string> answer = question->Wait();
  runner->loop()->Post([&] {
    question.reset();
    runner->Stop();
  });
  runner->Join();
  if (!answer.ok()) return Complain(answer.status());
  std::printf("%s\n", answer->c_str());
  return 0;
}

}  // namespace leeway::tools
