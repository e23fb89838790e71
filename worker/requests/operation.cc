#include "worker/requests/operation.h"

#include "absl/strings/str_cat.h"

namespace leeway::worker {

std::string Operation::Describe() const {
  const char* verb = op == proto::Op::kPush   ? "push to"
                     : op == proto::Op::kPull ? "pull of"
                                              : "push-pull of";
  return absl::StrCat(verb, " table '", table->spec.name, "'");
}

}  // namespace leeway::worker
