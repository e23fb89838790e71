#include "ps/shard/state/answers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/store/decode_pushes.h"

namespace leeway::ps {

proto::Reply ReplyTo(const proto::Request& request) {
  proto::Reply reply;
  reply.id = request.id;
  reply.op = request.op;
  reply.kind = request.kind;
  reply.dtype = request.dtype;
  reply.clock = request.clock;
  reply.priority = request.priority;
  return reply;
}

absl::Time DeadlineOf(const ShardState& state, const Inbound& inbound) {
  const std::uint64_t timeout = inbound.request.timeout_ms;
  return timeout == 0 ? absl::InfiniteFuture()
                      : state.context->loop->Now() + absl::Milliseconds(timeout);
}

void Refuse(const ShardState& state, const Inbound& inbound, const absl::Status& why) {
  CountRefusal(why, state.context->counters);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  state.answers->AnswerNow(inbound.peer, std::move(reply));
  if (IsMalformedEncoding(why)) state.effects->Offended(inbound.peer, why);
}

void RefuseWhenCommitted(const ShardState& state, const Inbound& inbound, const absl::Status& why) {
  if (inbound.request.op != proto::Op::kCall) return Refuse(state, inbound, why);
  CountRefusal(why, state.context->counters);
  proto::Reply reply = ReplyTo(inbound.request);
  reply.result = why;
  state.answers->Answer(inbound.peer, std::move(reply), {}, DeadlineOf(state, inbound));
}

void AnswerCall(const ShardState& state, const Inbound& inbound, const runtime::Buffer& answer) {
  state.answers->Answer(inbound.peer, ReplyTo(inbound.request), {answer},
                        DeadlineOf(state, inbound));
}

void RefusePull(const ShardState& state, const Inbound& inbound, const absl::Status& why) {
  if (!HasPush(inbound.request.op)) return Refuse(state, inbound, why);
  Refuse(state, inbound,
         absl::UnknownError(absl::StrCat(why.message(), " (", absl::StatusCodeToString(why.code()),
                                         "); what it pushed along was accepted")));
}

void Acknowledge(const ShardState& state, const Inbound& inbound, bool held) {
  proto::Reply reply = ReplyTo(inbound.request);
  reply.slowest_clock = state.clocks.slowest();
  reply.staleness = Policy::Staleness(reply.clock, reply.slowest_clock);
  reply.provisional = held && state.effects->provisional();
  held ? state.answers->AnswerNow(inbound.peer, std::move(reply))
       : state.answers->Answer(inbound.peer, std::move(reply), {}, DeadlineOf(state, inbound));
}

}  // namespace leeway::ps
