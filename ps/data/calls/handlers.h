// The process's request handlers, by name; leeway::RegisterHandler and RegisterAsyncHandler add
// one.
#ifndef LEEWAY_PS_DATA_CALLS_HANDLERS_H_
#define LEEWAY_PS_DATA_CALLS_HANDLERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/server.h"

namespace leeway::ps {

// NOT_FOUND names the handlers there are. Any thread.
absl::StatusOr<std::shared_ptr<const AsyncHandler>> FindHandler(absl::string_view name);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_CALLS_HANDLERS_H_
