#include "ps/table/inbound.h"

#include <limits>
#include <utility>

#include "proto/messages/limits.h"

namespace leeway::ps {
namespace {

// The frame at `next`, and one further; empty where there is none.
runtime::Buffer Take(const Payload& payload, std::size_t* next) {
  return *next < payload.size() ? payload[(*next)++] : runtime::Buffer();
}

}  // namespace

void ForEachPush(van::PeerId peer, const proto::PushBatch& batch, const runtime::Buffer& values,
                 absl::FunctionRef<void(Inbound)> take) {
  std::size_t begin = 0;
  for (const proto::BatchedPush& push : batch.pushes) {
    const std::size_t bytes = push.elements * SizeOf(batch.dtype);
    Inbound inbound{.peer = peer, .request = proto::RequestOf(batch, push), .payload = {}};
    inbound.payload.push_back(values.Part(begin, bytes));
    begin += bytes;
    take(std::move(inbound));
  }
}

// So that EnsureOwned copies what came in a batch.
static_assert(proto::kBatchedPushBytesMax < runtime::Buffer::kMayShareBytes);

void EnsureOwned(Payload* payload) {
  for (runtime::Buffer& frame : *payload) frame = frame.EnsureOwned();
}

void EnsureOwned(PushView* push) {
  for (runtime::Buffer* frame : {&push->keys, &push->widths, &push->values}) {
    *frame = frame->EnsureOwned();
  }
}

PushView ToPush(const Inbound& inbound) {
  const proto::Request& request = inbound.request;
  PushView push;
  push.block = request.block;
  push.learning_rate =
      request.has_learning_rate ? request.learning_rate : std::numeric_limits<double>::quiet_NaN();
  push.codec = request.codec;
  std::size_t next = 0;
  if (request.kind != TableKind::kDense) push.keys = Take(inbound.payload, &next);
  if (request.kind == TableKind::kRagged) push.widths = Take(inbound.payload, &next);
  push.values = Take(inbound.payload, &next);
  return push;
}

PullView ToPull(const Inbound& inbound) {
  PullView pull;
  pull.block = inbound.request.block;
  pull.elements = inbound.request.elements;
  pull.have = inbound.request.have;
  pull.own_push = HasPush(inbound.request.op);
  std::size_t next = 0;
  if (inbound.request.kind != TableKind::kDense) pull.keys = Take(inbound.payload, &next);
  return pull;
}

}  // namespace leeway::ps
