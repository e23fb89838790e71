#include "cluster/sum.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "harness/stopwatch.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/shard_store.h"
#include "runtime/memory/buffer.h"

namespace leeway::bench {
namespace {

// As much memory as the memcpy that this is compared with touches (raw/memory.cc): the speed of
// both depends on the cache that holds it. Most caches hold less than the "far" size.
constexpr std::size_t kNearBytes = 64 << 20, kFarBytes = 144 << 20;

}  // namespace

Measured MeasureSum(const Command& command) {
  Measured measured;
  const std::size_t elements = command.bytes / sizeof(float);
  const auto count = static_cast<std::size_t>(command.in_flight);
  const std::size_t bytes = command.op == "sum_far" ? kFarBytes : kNearBytes;
  const std::size_t blocks = std::max<std::size_t>(1, bytes / (command.bytes * (count + 1)));
  const TableSpec spec = TableSpec::Dense("sum", {blocks * elements});
  const auto updater = ps::MakeUpdater(spec);
  if (!updater.ok()) {
    measured.error = updater.status().ToString();
    return measured;
  }
  const auto store =
      ps::NewShardStore(spec, {.table = 1, .block_bytes = command.bytes}, updater->get());
  // In memory as a transport allocates it for received messages.
  std::vector<runtime::Buffer> values(blocks * count);
  for (runtime::Buffer& one : values) {
    std::byte* data = nullptr;
    one = runtime::Buffer::Allocate(elements * sizeof(float), &data);
    std::fill_n(reinterpret_cast<float*>(data), elements, 1e-3f);
  }
  const auto add = [&](std::size_t block) {
    std::vector<ps::PushView> pushes(count);
    for (std::size_t i = 0; i < count; ++i) {
      pushes[i].block = block;
      pushes[i].learning_rate = NAN;
      pushes[i].values = values[block * count + i];
    }
    const absl::Status status =
        store->ApplyCombined(pushes, static_cast<std::uint32_t>(command.in_flight));
    if (!status.ok()) measured.error = status.ToString();
  };
  for (std::size_t block = 0; block < blocks; ++block) add(block);
  const Stopwatch watch;
  for (; measured.error.empty() && (measured.operations == 0 || watch.Seconds() < command.seconds);
       ++measured.operations) {
    add(measured.operations % blocks);
  }
  measured.seconds = watch.Seconds();
  measured.cpu_seconds = watch.Cpu();
  measured.bytes = measured.operations * (count + 2) * command.bytes;
  return measured;
}

}  // namespace leeway::bench
