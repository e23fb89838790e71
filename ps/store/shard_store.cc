#include "ps/store/shard_store.h"

namespace leeway::ps {

absl::StatusOr<FeedbackBlock> ShardStore::OpenFeedback(std::uint64_t, bool) {
  return absl::FailedPreconditionError("only dense tables have blocks with feedback");
}

absl::StatusOr<runtime::Buffer> ShardStore::FeedbackView(std::uint64_t) {
  return absl::FailedPreconditionError("only dense tables have blocks with feedback");
}

}  // namespace leeway::ps
