// RunServer runs a server from your own program, with your own request handlers and plugins.
//
// A plugin is a shared library with
//     extern "C" void LeewayRegister();
// which calls RegisterUpdater and RegisterHandler, or with
//     extern "C" void LeewayRegisterCodecs();
// which calls RegisterCodec (leeway/codec.h). `LEEWAY_PLUGINS=/path/a.so:/path/b.so` makes a server
// load it; a library that cannot be loaded stops the server with the loader's reason. A worker
// loads plugins for their codecs, which have to be in a library without updaters and handlers; the
// worker's program has to export its symbols to libraries (CMake: ENABLE_EXPORTS). Return errors:
// an exception that a handler, an updater or its factory throws ends the server.
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

// The caller of a handler, and the place where the handler runs.
struct HandlerContext {
  std::uint32_t worker_rank;
  std::uint32_t server_rank;
  std::uint32_t thread;  // index of the server's data thread
};

// Answers Worker::Call. Runs on a server's data thread, so it must not block. Request and answer
// are bytes; an error travels to the caller unchanged.
using RequestHandler =
    std::function<absl::StatusOr<std::string>(const HandlerContext&, absl::string_view request)>;

// ALREADY_EXISTS if the name is taken. Any thread.
absl::Status RegisterHandler(absl::string_view name, RequestHandler handler);

// Runs a server until the cluster ends or a signal ends it. Blocks. SIGTERM drains the server
// first: its shards move to other servers while training goes on (Config::drain_timeout). SIGINT, a
// second signal, and SIGTERM where no other server can take the shards, end it at once, with its
// shards. OK: the cluster ended in order, or the server was drained. CANCELLED: it was stopped with
// its shards.
absl::Status RunServer(const Config& config);

}  // namespace leeway

#endif  // LEEWAY_SERVER_H_
