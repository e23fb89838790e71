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

}  // namespace
}  // namespace leeway
