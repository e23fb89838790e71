#include "van/rdma/verbs/verbs.h"

#include "absl/strings/str_cat.h"

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

}  // namespace

absl::Status StatusOf(const Completion& completion) {
  if (completion.outcome == Outcome::kOk) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the rdma connection broke: ", Words(completion.outcome), " (vendor code ",
                   completion.vendor_code, ")"));
}

}  // namespace leeway::van::verbs
