// Micro-benchmarks of making and checking the headers of the data path.
#include <array>
#include <vector>

#include "benchmark/benchmark.h"
#include "proto/encoding/encoding.h"

namespace leeway {
namespace {

proto::Request DenseRequest(const std::vector<float>& values) {
  proto::Request request;
  request.id = {.incarnation = 7, .sequence = 42, .worker = 1, .shard = 3};
  request.epoch = 1;
  request.table = 1;
  request.op = proto::Op::kPush;
  request.elements = values.size();
  return request;
}

void BM_EncodeRequest(benchmark::State& state) {
  const std::vector<float> values(16);
  const proto::AnyMessage message = DenseRequest(values);
  for (auto _ : state) benchmark::DoNotOptimize(proto::Encode(message));
}
BENCHMARK(BM_EncodeRequest);

void BM_DecodeRequest(benchmark::State& state) {
  const std::vector<float> values(16);
  const runtime::Buffer header = proto::Encode(DenseRequest(values));
  std::array<runtime::Buffer, 1> payload = {runtime::Buffer::Unowned(values.data(), 64)};
  for (auto _ : state) benchmark::DoNotOptimize(proto::Decode(header, payload));
}
BENCHMARK(BM_DecodeRequest);

// Decodes `message` again and again.
void DecodeHeaderOf(benchmark::State& state, const proto::AnyMessage& message,
                    std::vector<runtime::Buffer> payload = {}) {
  const runtime::Buffer header = proto::Encode(message);
  for (auto _ : state) benchmark::DoNotOptimize(proto::Decode(header, payload));
}

runtime::Buffer ZerosFrame(std::size_t floats) {
  static const auto& zeros = *new std::vector<float>(1024);
  return runtime::Buffer::Unowned(zeros.data(), floats * sizeof(float));
}

proto::Reply PullReply() {
  proto::Reply reply;
  reply.id = {.incarnation = 7, .sequence = 42, .worker = 1, .shard = 3};
  reply.op = proto::Op::kPull;
  reply.clock = 9;
  reply.elements = 16;
  reply.version = 12;
  return reply;
}

proto::Replicate LoggedPush() {
  return {.shard = 3,
          .epoch = 1,
          .stream = 5,
          .entry = 7,
          .index = 9,
          .worker = 1,
          .incarnation = 7,
          .sequence = 42,
          .table = 1,
          .clock = 9,
          .elements = 16};
}

proto::ClockTick Tick() {
  proto::ClockTick tick{.worker = 1, .incarnation = 7, .epoch = 1, .clock = 9};
  for (std::uint32_t shard = 0; shard < 16; ++shard) tick.watermarks.push_back({42, shard});
  return tick;
}

proto::PushBatch Batch() {
  proto::PushBatch batch{.incarnation = 7, .worker = 1, .epoch = 1, .clock = 9};
  batch.pushes.resize(64, {.sequence = 42, .elements = 16, .shard = 3, .table = 1});
  return batch;
}

proto::PushAcks Acks() {
  return {.incarnation = 7, .worker = 1, .acks = {64, {.sequence = 42, .shard = 3}}};
}

void BM_EncodeReply(benchmark::State& state) {
  const proto::AnyMessage message = PullReply();
  for (auto _ : state) benchmark::DoNotOptimize(proto::Encode(message));
}
void BM_EncodeReplicate(benchmark::State& state) {
  const proto::AnyMessage message = LoggedPush();
  for (auto _ : state) benchmark::DoNotOptimize(proto::Encode(message));
}
void BM_EncodeBatch(benchmark::State& state) {
  const proto::AnyMessage message = Batch();
  for (auto _ : state) benchmark::DoNotOptimize(proto::Encode(message));
}
void BM_DecodeReply(benchmark::State& state) {
  DecodeHeaderOf(state, PullReply(), {ZerosFrame(16)});
}
void BM_DecodeReplicate(benchmark::State& state) {
  DecodeHeaderOf(state, LoggedPush(), {ZerosFrame(16)});
}
void BM_DecodeTick(benchmark::State& state) { DecodeHeaderOf(state, Tick()); }
void BM_DecodeBatch(benchmark::State& state) { DecodeHeaderOf(state, Batch(), {ZerosFrame(1024)}); }
void BM_DecodeAcks(benchmark::State& state) { DecodeHeaderOf(state, Acks()); }
BENCHMARK(BM_EncodeReply);
BENCHMARK(BM_EncodeReplicate);
BENCHMARK(BM_EncodeBatch);
BENCHMARK(BM_DecodeReply);
BENCHMARK(BM_DecodeReplicate);
BENCHMARK(BM_DecodeTick);
BENCHMARK(BM_DecodeBatch);
BENCHMARK(BM_DecodeAcks);

}  // namespace
}  // namespace leeway
