#include "tools/admin/admin_call.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "node/joining.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/limits.h"
#include "proto/messages/messages.h"
#include "proto/tables/text.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/loop/real_loop.h"
#include "runtime/loop/timer.h"
#include "van/mixed/mixed_van.h"

namespace leeway::tools {
namespace {

constexpr absl::Duration kConnectPatience = absl::Seconds(10);
// A scheduler that sends nothing for so long counts as gone.
constexpr absl::Duration kSilencePatience = absl::Seconds(30);
constexpr absl::Duration kWatchInterval = absl::Milliseconds(300);

// Lives on a loop; another thread waits for the answer.
class Call final : public van::Handler {
 public:
  Call(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, const Config& config,
       proto::Admin admin, std::function<void(const std::string&)> watch)
      : host_(host),
        loop_(loop),
        factory_(factory),
        config_(config),
        admin_(std::move(admin)),
        watch_(std::move(watch)),
        ask_status_(loop, [this] { Watch(); }),
        silence_(loop, [this] {
          Finish(absl::DeadlineExceededError(
              absl::StrCat("the scheduler at ", address_, " has sent nothing for ",
                           runtime::FormatDuration(kSilencePatience))));
        }) {}

  // On the loop, as all calls but Wait.
  void Start(const std::string& address) {
    address_ = absl::StrCat(address, " (LEEWAY_SCHEDULER)");
    van_ = factory_->New(loop_,
                         {.role = Role::kTool,
                          .node = 0,
                          .incarnation = host_->Random(),
                          .cluster = 0,
                          .capabilities = 0},
                         van::LimitsFrom(config_), this);
    const absl::Duration patience = std::min(kConnectPatience, config_.connect_timeout);
    const absl::StatusOr<van::PeerId> peer = van_->Connect(address, patience);
    if (!peer.ok()) return Finish(peer.status());
    peer_ = *peer;
  }

  absl::StatusOr<std::string> Wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return answer_.has_value(); });
    return *answer_;
  }

 private:
  void OnPeerUp(van::PeerId, const van::Identity& identity) override {
    if (identity.role != Role::kScheduler) {
      return Finish(absl::FailedPreconditionError(
          absl::StrCat(address_, " is a ", Name(identity.role), ", not a scheduler")));
    }
    reached_ = true;
    Send(admin_);
    Watch();
    Heard();
  }
  void OnPeerDown(van::PeerId, const absl::Status& why) override {
    if (!reached_) {
      return Finish(absl::UnavailableError(absl::StrCat(node::NotReachedAt(why), " ", address_,
                                                        why.ok() ? "" : ": ", why.message())));
    }
    Finish(absl::UnavailableError(
        absl::StrCat("the scheduler at ", address_, " closed the connection before it had answered",
                     why.ok() ? "" : absl::StrCat(" (", why.message(), ")"),
                     "; the command may still be carried out: see leeway status")));
  }
  void OnMessage(van::PeerId, van::Message raw) override {
    const absl::StatusOr<proto::AnyMessage> message =
        proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
    if (!message.ok()) return Finish(message.status());
    Heard();
    if (std::holds_alternative<proto::StatusReply>(*message)) {
      if (watch_) watch_(std::string(raw.payload[0].text()));
    } else if (const auto* reply = std::get_if<proto::AdminReply>(&*message)) {
      if (!reply->result.ok()) return Finish(reply->result);
      Finish(std::string(raw.payload[0].text()));
    }
  }

  void Send(const proto::AnyMessage& message) {
    van::Message raw;
    raw.header = proto::Encode(message);
    if (absl::Status sent = van_->Send(peer_, std::move(raw)); !sent.ok()) Finish(sent);
  }
  void Watch() {
    Send(proto::StatusRequest{1});
    ask_status_.SetAfter(kWatchInterval);
  }
  void Heard() { silence_.SetAfter(kSilencePatience); }

  void Finish(absl::StatusOr<std::string> answer) {
    const std::lock_guard lock(mutex_);
    if (answer_.has_value()) return;
    answer_ = std::move(answer);
    finished_.notify_all();
  }

  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  const Config& config_;
  const proto::Admin admin_;
  const std::function<void(const std::string&)> watch_;
  std::string address_;
  van::PeerId peer_ = 0;
  bool reached_ = false;
  runtime::Timer ask_status_, silence_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<absl::StatusOr<std::string>> answer_;  // under mutex_
  std::unique_ptr<van::Van> van_;
};

// The scheduler would take longer ones for a malformed message, and drop the connection.
absl::Status CheckArguments(const std::string& command, const std::vector<std::string>& arguments) {
  if (arguments.size() > proto::kArgumentsMax) {
    return absl::InvalidArgumentError(absl::StrCat(command, " is given ", arguments.size(),
                                                   " arguments, may be ", proto::kArgumentsMax));
  }
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bytes += arguments[i].size();
    LEEWAY_RETURN_IF_ERROR(proto::CheckText(absl::StrCat("argument ", i + 1, " of ", command),
                                            arguments[i], 0, proto::kArgumentBytesMax));
  }
  if (bytes > proto::kArgumentsBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the arguments of ", command, " have ", bytes,
                                                   " bytes together, may have ",
                                                   proto::kArgumentsBytesMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> AskScheduler(const Config& config, const std::string& command,
                                         const std::vector<std::string>& arguments,
                                         std::function<void(const std::string& status)> watch) {
  LEEWAY_RETURN_IF_ERROR(CheckArguments(command, arguments));
  LEEWAY_ASSIGN_OR_RETURN(const std::string address, runtime::NormalizeAddress(config.scheduler));
  const std::unique_ptr<runtime::Host> host = runtime::NewRealHost();
  const std::unique_ptr<van::Factory> factory = van::NewToolFactory(config);
  const std::unique_ptr<runtime::LoopRunner> runner = host->Spawn("admin");
  auto call = std::make_unique<Call>(
      host.get(), runner->loop(), factory.get(), config,
      proto::Admin{.request = 1, .command = command, .arguments = arguments}, std::move(watch));
  runner->loop()->Post([&] { call->Start(address); });
  absl::StatusOr<std::string> answer = call->Wait();
  runner->loop()->Post([&] {
    call.reset();
    runner->Stop();
  });
  runner->Join();
  return answer;
}

}  // namespace leeway::tools
