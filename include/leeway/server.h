// RunServer runs a server from your own program, with your own request handlers and plugins.
//
// A plugin is a shared library with
//     extern "C" void LeewayRegister();
// which calls RegisterUpdater, RegisterHandler and RegisterShardHandler (leeway/shard_handler.h:
// handlers that read and update tables), or with
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
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/call.h"
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

namespace ps {
class CallAnswers;
}

// The right to answer one call, once, now or later, from any thread. One that is destroyed without
// an answer answers INTERNAL. An answer to a worker that has gone, or of a server that has ended,
// is dropped.
class Responder {
 public:
  Responder(std::shared_ptr<ps::CallAnswers> answers, std::uint64_t call);
  Responder(Responder&& other) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  // 1 to 8 frames, or an error, which travels to the caller unchanged. Later answers do nothing.
  void Answer(absl::StatusOr<CallFrames> answer);

 private:
  std::shared_ptr<ps::CallAnswers> answers_;  // null once it has answered
  std::uint64_t call_ = 0;
};

// Answers Worker::Call in its own time: while it runs, it is on a server's data thread and must not
// block; the responder may be kept. A server has at most 65,536 calls to answer, whose frames take
// at most LEEWAY_HELD_BYTES_MAX together with the pushes that wait there; others it answers with
// RESOURCE_EXHAUSTED.
using AsyncHandler =
    std::function<void(const HandlerContext&, CallFrames request, Responder responder)>;

// As RegisterHandler; the names are the same ones.
absl::Status RegisterAsyncHandler(absl::string_view name, AsyncHandler handler);

// Runs a server until the cluster ends or a signal ends it. Blocks. SIGTERM drains the server
// first: its shards move to other servers while training goes on (Config::drain_timeout). SIGINT, a
// second signal, and SIGTERM where no other server can take the shards, end it at once, with its
// shards. OK: the cluster ended in order, or the server was drained. CANCELLED: it was stopped with
// its shards.
absl::Status RunServer(const Config& config);

}  // namespace leeway

#endif  // LEEWAY_SERVER_H_
