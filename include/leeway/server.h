// Running a server from your own program, with your own request handlers; and plugins.
//
// A plugin is a shared library with
//     extern "C" void LeewayRegister();
// which calls RegisterUpdater and RegisterHandler, or with
//     extern "C" void LeewayRegisterCodecs();
// which calls RegisterCodec (leeway/codec.h). `LEEWAY_PLUGINS=/path/a.so:/path/b.so` makes a server
// load it; a library that cannot be loaded stops the server with the loader's reason. A worker
// loads it for its codecs, which have to be in a library without updaters and handlers; the program
// has to be linked so that libraries can call it (CMake: ENABLE_EXPORTS). Errors are returned: an
// exception thrown by a handler, an updater or its factory ends the server.
#ifndef LEEWAY_SERVER_H_
#define LEEWAY_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "leeway/updater.h"

namespace leeway {

// What a handler sees of its caller and its place.
struct HandlerContext {
  std::uint32_t worker_rank;
  std::uint32_t server_rank;
  std::uint32_t thread;  // index of the server thread it runs on
};

// Answers Worker::Call. Runs on a server's data thread, so it must not block. Bytes in, bytes out;
// an error travels back to the caller as it is.
using RequestHandler =
    std::function<absl::StatusOr<std::string>(const HandlerContext&, absl::string_view request)>;

// ALREADY_EXISTS if the name is taken. Any thread.
absl::Status RegisterHandler(absl::string_view name, RequestHandler handler);

// Runs a server until the cluster ends or a signal ends it. Blocks. SIGTERM has it drained first:
// its shards are moved to other servers while training goes on (Config::drain_timeout); SIGINT, a
// second signal, and SIGTERM where there is nowhere to move them to, end it at once, with its
// shards. OK: the cluster ended in order, or the server was drained. CANCELLED: it was stopped with
// its shards.
absl::Status RunServer(const Config& config);

}  // namespace leeway

#endif  // LEEWAY_SERVER_H_
