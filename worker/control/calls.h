// The calls of users' request handlers on servers that are not answered yet.
//
// A call is sent once, to thread 0 of its server. If the connection breaks, whether the handler ran
// is unknown, so the call fails with UNAVAILABLE and is never repeated. Lives on the core's loop.
#ifndef LEEWAY_WORKER_CONTROL_CALLS_H_
#define LEEWAY_WORKER_CONTROL_CALLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "node/call_frames.h"
#include "proto/messages/messages.h"
#include "runtime/loop/lifetime.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "runtime/memory/buffer.h"
#include "worker/links/servers.h"

namespace leeway::worker {

class Calls {
 public:
  using Frames = node::FrameBuffers;
  using Done = absl::AnyInvocable<void(absl::StatusOr<Frames>)>;

  Calls(runtime::Loop* loop, Servers* servers);

  // `request`: 1 to 8 frames. `done` once, with the handler's answer or an error; from within Call
  // where the server is known to be missing.
  void Call(std::uint32_t server_rank, const std::string& handler, Frames request,
            absl::Duration timeout, Done done);

  // Ends a call with its reply. Replies to calls that have ended are ignored.
  void OnReply(const proto::CallReply& reply, std::span<const runtime::Buffer> payload);
  void OnLinkUp(Link* link);
  void OnLinkDown(Link* link, const absl::Status& why);
  // Ends the calls to a server, or all, with `why`.
  void DropServer(std::uint32_t server_rank, const absl::Status& why);
  void Fail(const absl::Status& why);

 private:
  struct Pending {
    Link* link = nullptr;
    std::string handler;
    Frames request;
    bool sent = false;
    absl::Time started, deadline;
    Done done;
  };
  using Map = std::map<std::uint64_t, Pending>;

  void Send(std::uint64_t number, Pending& pending);
  void Look();
  // Ends the calls that `which` picks, in the order they were made.
  template <class Which>
  void End(Which&& which, const std::function<absl::Status(const Pending&)>& why);

  runtime::Loop* const loop_;
  Servers* const servers_;
  std::uint64_t next_ = 1;
  Map pending_;
  runtime::Timer look_;
  runtime::Lifetime lifetime_;  // for posted tasks
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_CALLS_H_
