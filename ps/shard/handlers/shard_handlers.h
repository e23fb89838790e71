// The process's shard handlers, by name; leeway::RegisterShardHandler adds one.
#ifndef LEEWAY_PS_SHARD_HANDLERS_SHARD_HANDLERS_H_
#define LEEWAY_PS_SHARD_HANDLERS_SHARD_HANDLERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/shard_handler.h"

namespace leeway::ps {

// NOT_FOUND names the handlers there are. Any thread.
absl::StatusOr<ShardHandler> FindShardHandler(absl::string_view name);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_HANDLERS_SHARD_HANDLERS_H_
