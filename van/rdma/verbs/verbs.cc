#include "van/rdma/verbs/verbs.h"

#include <sys/eventfd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/unique_fd.h"

namespace leeway::van::verbs {
namespace {

absl::string_view Words(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "done";
    case Outcome::kFlushed:
      return "the connection ended before";
    case Outcome::kRetriesExceeded:
      return "the other side does not answer";
    case Outcome::kReceiverNotReady:
      return "the other side posted no receive";
    case Outcome::kRemoteAccess:
      return "the other side no longer grants that memory";
    case Outcome::kRemoteInvalid:
      return "the other side could not carry it out";
    case Outcome::kLocalProtection:
      return "memory of this side is not registered";
    case Outcome::kLocalLength:
      return "it did not fit into a receive of this side";
    case Outcome::kOther:
      break;
  }
  return "the device reported an error";
}

class RefusingVerbs final : public Verbs {
 public:
  explicit RefusingVerbs(absl::Status why)
      : why_(std::move(why)), never_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const override { return never_.get(); }
  absl::StatusOr<std::uint16_t> Listen(const sockaddr_storage&) override { return why_; }
  absl::StatusOr<std::unique_ptr<Connection>> Dial(const sockaddr_storage&) override {
    return why_;
  }
  bool NextEvent(Event*) override { return false; }
  std::span<Device* const> devices() const override { return {}; }

 private:
  const absl::Status why_;
  const runtime::UniqueFd never_;
};

}  // namespace

std::unique_ptr<Verbs> NoVerbs(absl::Status why) {
  return std::make_unique<RefusingVerbs>(std::move(why));
}

absl::Status StatusOf(const Completion& completion) {
  if (completion.outcome == Outcome::kOk) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the rdma connection broke: ", Words(completion.outcome), " (vendor code ",
                   completion.vendor_code, ")"));
}

}  // namespace leeway::van::verbs
