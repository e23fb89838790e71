#include "compat/core/server_calls.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compat/core/call_format.h"
#include "compat/core/customer_state.h"
#include "compat/core/frames.h"
#include "compat/core/nodes.h"
#include "compat/core/process.h"
#include "compat/core/settings.h"
#include "compat/ps/kv_app.h"
#include "leeway/server.h"
#include "ps/data/calls/calls.h"
#include "runtime/log/log.h"

namespace leeway::compat {
namespace {

using ::ps::internal::KVArrays;
using ::ps::internal::KVHead;
using ::ps::internal::SimpleMessage;

void AnswerWhich(const Process::CustomerPointer& state, Responder responder) {
  CallHead head;
  head.kind = CallKind::kWhichHandler;
  head.table = state->table_type;
  responder.Answer(CallFrames{FrameOf(head)});
}

// The handler's arrays have whole elements.
absl::Status CheckSizes(const ::ps::internal::CustomerState& state, const KVArrays& arrays) {
  if (arrays.keys.size % sizeof(::ps::Key) != 0 || arrays.lens.size % sizeof(int) != 0) {
    return absl::InvalidArgumentError("a request has keys or lens in part");
  }
  if (arrays.vals.size % state.value_bytes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a request has ", arrays.vals.size, " bytes of values, but values of the ",
                   "servers' KVServer of application ", state.app_id, " have ", state.value_bytes,
                   ": give the KVWorker the same type of values"));
}

void HandleKeyValues(const Process::CustomerPointer& state, const CallHead& head,
                     const KVArrays& arrays, Responder responder) {
  if (absl::Status sizes = CheckSizes(*state, arrays); !sizes.ok()) {
    return responder.Answer(std::move(sizes));
  }
  KVHead request;
  request.cmd = head.cmd;
  request.push = head.push != 0;
  request.pull = head.pull != 0;
  request.sender = head.sender;
  request.timestamp = head.timestamp;
  request.customer_id = head.customer_id;
  state->Keep({head.sender, head.customer_id, head.timestamp, false}, std::move(responder));
  state->kv_handler(request, arrays);
}

void HandleSimple(const Process::CustomerPointer& state, const CallHead& head, std::string body,
                  Responder responder) {
  SimpleMessage message;
  message.request = true;
  message.head = head.cmd;
  message.body = std::move(body);
  message.sender = head.sender;
  message.timestamp = head.timestamp;
  message.customer_id = head.customer_id;
  state->Keep({head.sender, head.customer_id, head.timestamp, true}, std::move(responder));
  state->on_message(message);
}

// On a data thread, which also runs the handlers of keys and values that have to wait.
void Handle(const HandlerContext& context, CallFrames frames, Responder responder) {
  std::optional<CallHead> head = HeadOf(frames);
  const bool sound =
      head.has_value() && (head->kind == CallKind::kWhichHandler ||
                           (head->kind == CallKind::kSimple && frames.size() == 2) ||
                           (head->kind == CallKind::kKeyValues && HasArrays(*head, frames)));
  if (!sound) {
    return responder.Answer(absl::InvalidArgumentError(
        "this is no request of ps-lite's: worker and server have different versions of Leeway"));
  }
  head->sender = WorkerNode(context.worker_rank);
  const bool simple = head->kind == CallKind::kSimple;
  Turns::Home home;
  if (!simple) home = {std::this_thread::get_id(), leeway::ps::DataThreadOfHandler()};
  Process::Get().Deliver(
      head->app_id, head->customer_id, simple ? MessageKind::kSimple : MessageKind::kKeyValues,
      [head = *head, frames = std::move(frames),
       responder = std::move(responder)](const Process::CustomerPointer& state) mutable {
        switch (head.kind) {
          case CallKind::kWhichHandler:
            return AnswerWhich(state, std::move(responder));
          case CallKind::kSimple:
            return HandleSimple(state, head, TextOf(frames[1]), std::move(responder));
          case CallKind::kKeyValues:
            return HandleKeyValues(state, head, ArraysOf(head, frames), std::move(responder));
        }
      },
      std::move(home));
}

}  // namespace

void RegisterServerHandler() {
  static const absl::Status registered = RegisterAsyncHandler(kHandler, Handle);
  if (!registered.ok()) ::ps::internal::Fail(std::string(registered.message()));
}

}  // namespace leeway::compat

namespace ps::internal {

using leeway::CallFrames;
using leeway::compat::CallHead;
using leeway::compat::CallKind;
using leeway::compat::MessageKind;
using leeway::compat::Process;

void SetKVHandler(Customer* customer, KVHandler handler, ValueType table, size_t value_bytes) {
  CustomerState& state = *customer->state();
  state.kv_handler = std::move(handler);
  state.value_bytes = value_bytes;
  state.table_type = leeway::compat::UsesTables() ? table : kNoTable;
  state.turns->Open(MessageKind::kSimple);
  state.turns->Open(MessageKind::kKeyValues);
}

void Respond(Customer* customer, const KVHead& to, KVArrays arrays) {
  std::optional<leeway::Responder> responder =
      customer->state()->Take({to.sender, to.customer_id, to.timestamp, false});
  if (!responder.has_value()) {
    return leeway::runtime::LogError("ps: a response to request ", to.timestamp, " of node ",
                                     to.sender, ", which has been answered or was never made");
  }
  CallHead head;
  head.has_lens = arrays.has_lens ? 1 : 0;
  responder->Answer(leeway::compat::FramesOf(head, std::move(arrays)));
}

bool RespondByCall(Customer* customer, const SimpleMessage& to, const std::string& body) {
  std::optional<leeway::Responder> responder =
      customer->state()->Take({to.sender, to.customer_id, to.timestamp, true});
  if (!responder.has_value()) return false;
  CallHead head;
  head.kind = CallKind::kSimple;
  head.cmd = to.head;
  responder->Answer(CallFrames{leeway::compat::FrameOf(head), leeway::CallFrame::Of(body)});
  return true;
}

}  // namespace ps::internal
