#include "worker/links/push_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/messages/limits.h"

namespace leeway::worker {
namespace {

// Pushes whose timeouts differ by no more get the same timeout.
constexpr std::uint64_t kTimeoutSlackMs = 10;

bool About(std::uint64_t a_ms, std::uint64_t b_ms) {
  if (a_ms == 0 || b_ms == 0) return a_ms == b_ms;  // 0: no end
  return std::max(a_ms, b_ms) - std::min(a_ms, b_ms) <= kTimeoutSlackMs;
}

}  // namespace

bool PushBatch::Takes(const proto::Request& request, std::span<const runtime::Buffer> payload) {
  return request.op == proto::Op::kPush && request.kind == TableKind::kDense &&
         payload.size() == 1 && request.codec == 0 && request.read_updates == 0 &&
         payload[0].size() <= proto::kBatchedPushBytesMax &&
         request.elements <= std::numeric_limits<std::uint32_t>::max();
}

bool PushBatch::Fits(const proto::Request& request, std::size_t bytes) const {
  if (empty()) return true;
  return batch_.pushes.size() < proto::kPushesPerBatchMax &&
         values_.size() + bytes <= proto::kBatchBytesMax && batch_.epoch == request.epoch &&
         batch_.clock == request.clock && batch_.dtype == request.dtype &&
         batch_.priority == request.priority &&
         batch_.has_learning_rate == request.has_learning_rate &&
         batch_.learning_rate == request.learning_rate &&
         About(batch_.timeout_ms, request.timeout_ms) &&
         About(longest_timeout_ms_, request.timeout_ms);
}

void PushBatch::Add(const proto::Request& request, const runtime::Buffer& values) {
  if (empty()) {
    batch_.incarnation = request.id.incarnation;
    batch_.worker = request.id.worker;
    batch_.epoch = request.epoch;
    batch_.dtype = request.dtype;
    batch_.clock = request.clock;
    batch_.timeout_ms = longest_timeout_ms_ = request.timeout_ms;
    batch_.learning_rate = request.learning_rate;
    batch_.has_learning_rate = request.has_learning_rate;
    batch_.priority = request.priority;
  }
  batch_.timeout_ms = std::min(batch_.timeout_ms, request.timeout_ms);
  longest_timeout_ms_ = std::max(longest_timeout_ms_, request.timeout_ms);
  batch_.pushes.push_back({.sequence = request.id.sequence,
                           .after = request.after,
                           .block = request.block,
                           .elements = static_cast<std::uint32_t>(request.elements),
                           .shard = request.id.shard,
                           .table = request.table});
  values_.insert(values_.end(), values.data(), values.data() + values.size());
}

void PushBatch::Clear() {
  batch_.pushes.clear();
  values_.clear();
}

PushBatch::Message PushBatch::Take() {
  Message message;
  message.values = runtime::Buffer::CopyOf(values_.data(), values_.size());
  if (batch_.pushes.size() == 1) {
    message.header = proto::RequestOf(batch_, batch_.pushes[0]);
  } else {
    const std::size_t pushes = batch_.pushes.size();
    message.header = std::move(batch_);
    batch_.pushes = {};
    batch_.pushes.reserve(pushes);
  }
  Clear();
  return message;
}

}  // namespace leeway::worker
