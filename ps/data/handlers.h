// The process's request handlers, by name; leeway::RegisterHandler adds one.
#ifndef LEEWAY_PS_DATA_HANDLERS_H_
#define LEEWAY_PS_DATA_HANDLERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/server.h"

namespace leeway::ps {

// NOT_FOUND names the handlers there are. Any thread.
absl::StatusOr<RequestHandler> FindHandler(absl::string_view name);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_HANDLERS_H_
