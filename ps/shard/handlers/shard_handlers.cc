#include "ps/shard/handlers/shard_handlers.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"

namespace leeway {
namespace {

struct ShardHandlers {
  std::mutex mutex;
  std::map<std::string, ShardHandler, std::less<>> by_name;  // guarded by mutex
};

// Never destroyed: a plugin may register, and a server may still call, while statics go.
ShardHandlers& TheShardHandlers() {
  static ShardHandlers* const handlers = new ShardHandlers;
  return *handlers;
}

}  // namespace

absl::Status RegisterShardHandler(absl::string_view name, ShardHandler handler) {
  if (name.empty() || name.size() > proto::kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a shard handler's name has 1 to ",
                                                   proto::kNameBytesMax, " bytes; this one has ",
                                                   name.size()));
  }
  if (handler == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard handler \"", name, "\" is an empty function"));
  }
  ShardHandlers& handlers = TheShardHandlers();
  const std::lock_guard<std::mutex> lock(handlers.mutex);
  if (handlers.by_name.emplace(std::string(name), std::move(handler)).second) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("a shard handler named \"", name, "\" is registered already"));
}

namespace ps {

absl::StatusOr<ShardHandler> FindShardHandler(absl::string_view name) {
  ShardHandlers& handlers = TheShardHandlers();
  const std::lock_guard<std::mutex> lock(handlers.mutex);
  if (const auto found = handlers.by_name.find(name); found != handlers.by_name.end()) {
    return found->second;
  }
  std::string known;
  for (const auto& [other, handler] : handlers.by_name) {
    absl::StrAppend(&known, known.empty() ? "; there are: " : ", ", other);
  }
  return absl::NotFoundError(
      absl::StrCat("no shard handler named \"", name, "\" is registered on this server", known));
}

}  // namespace ps
}  // namespace leeway
