#include "ps/data/calls/handlers.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "proto/messages/messages.h"

namespace leeway {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const AsyncHandler>> handlers;  // guarded by mutex
};

// Never destroyed: a plugin may register, and a server may still call, while statics go.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

// A handler that answers at once, and whose request is one frame.
AsyncHandler Answering(RequestHandler handler) {
  return [handler = std::move(handler)](const HandlerContext& context, const CallFrames& request,
                                        Responder responder) {
    if (request.size() != 1) {
      return responder.Answer(absl::InvalidArgumentError(
          absl::StrCat("this handler takes a request of one frame, not of ", request.size())));
    }
    const std::span<const std::byte> bytes = request[0].bytes;
    absl::StatusOr<std::string> answer =
        handler(context, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!answer.ok()) return responder.Answer(answer.status());
    responder.Answer(CallFrames{CallFrame::Of(*std::move(answer))});
  };
}

}  // namespace

absl::Status RegisterHandler(absl::string_view name, RequestHandler handler) {
  return RegisterAsyncHandler(name, handler == nullptr ? nullptr : Answering(std::move(handler)));
}

absl::Status RegisterAsyncHandler(absl::string_view name, AsyncHandler handler) {
  if (name.empty() || name.size() > proto::kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a handler's name has 1 to ", proto::kNameBytesMax, " bytes; this one has ", name.size()));
  }
  if (name == proto::kProbeHandler) {
    return absl::AlreadyExistsError(
        absl::StrCat("a handler named \"", name, "\" is part of every server"));
  }
  if (handler == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("handler \"", name, "\" is an empty function"));
  }
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  auto shared = std::make_shared<const AsyncHandler>(std::move(handler));
  if (!registry.handlers.emplace(std::string(name), std::move(shared)).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("a handler named \"", name, "\" is registered already"));
  }
  return absl::OkStatus();
}

namespace ps {

absl::StatusOr<std::shared_ptr<const AsyncHandler>> FindHandler(absl::string_view name) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  auto it = registry.handlers.find(std::string(name));
  if (it != registry.handlers.end()) return it->second;
  std::string known;
  for (const auto& [other, handler] : registry.handlers) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", other);
  }
  return absl::NotFoundError(absl::StrCat("no handler named \"", name,
                                          "\" is registered on this server",
                                          known.empty() ? "" : "; there are: ", known));
}

}  // namespace ps
}  // namespace leeway
