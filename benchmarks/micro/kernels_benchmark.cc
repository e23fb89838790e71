// Micro-benchmarks of the loops over elements, at each level that the machine has. Bytes are those
// read and written, as in BM_Memcpy, which is the comparison.
#include <cstring>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "compress/kernels/kernels.h"

namespace leeway::compress {
namespace {

constexpr std::size_t kElements = 1 << 18;
constexpr std::size_t kBlocks = 16;  // more than any cache holds

void BM_Memcpy(benchmark::State& state) {
  constexpr std::size_t kBytes = kElements * sizeof(float);
  const std::vector<char> from(4 * kBlocks * kBytes, 1);
  std::vector<char> to(4 * kBlocks * kBytes, 2);
  std::size_t block = 0;
  for (auto _ : state) {
    std::memcpy(to.data() + block * kBytes, from.data() + block * kBytes, kBytes);
    benchmark::ClobberMemory();
    block = (block + 1) % (4 * kBlocks);
  }
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(kBytes));
}

template <class Stored>
void BM_Sum(benchmark::State& state, Level level, std::size_t count) {
  const auto sum = KernelsOf(level).sum.Of<Stored>();
  const std::vector<std::vector<Stored>> arrays(kBlocks * count, std::vector<Stored>(kElements));
  std::vector<std::vector<ComputeOf<Stored>>> to(kBlocks,
                                                 std::vector<ComputeOf<Stored>>(kElements));
  std::size_t block = 0;
  for (auto _ : state) {
    std::vector<const Stored*> from;
    for (std::size_t k = 0; k < count; ++k) from.push_back(arrays[block * count + k].data());
    sum(from.data(), count, 0, kElements, 1, to[block].data());
    benchmark::ClobberMemory();
    block = (block + 1) % kBlocks;
  }
  state.SetBytesProcessed(
      state.iterations() *
      static_cast<std::int64_t>(kElements * (count * sizeof(Stored) + sizeof(to[0][0]))));
}

// In the second-level cache, as a push that has just arrived.
template <class Half>
void BM_Halves(benchmark::State& state, Level level) {
  constexpr std::size_t kSize = 1 << 16;
  std::vector<Half> halves(kSize, Half(1.5f));
  std::vector<float> floats(kSize);
  const auto& kernels = KernelsOf(level).halves.Of<Half>();
  for (auto _ : state) {
    kernels.decode(reinterpret_cast<const std::byte*>(halves.data()), kSize, floats.data());
    kernels.narrow(floats.data(), kSize, reinterpret_cast<std::byte*>(halves.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * kSize));
}

using Update = void (*)(const UpdateKernels<float>&, const Elements<float>&);

void BM_Update(benchmark::State& state, Level level, Update update) {
  constexpr std::size_t kSize = 1 << 14;
  std::vector<float> value(kSize, 1), gradient(kSize, 1e-3f), first(kSize), second(kSize);
  float* const slots[] = {first.data(), second.data()};
  const UpdateKernels<float>& kernels = KernelsOf(level).update.Of<float>();
  for (auto _ : state) {
    update(kernels, {value.data(), gradient.data(), slots, kSize});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSize));
}

struct NamedUpdate {
  const char* name;
  Update update;
};

constexpr NamedUpdate kUpdates[] = {
    {"add", [](const auto& kernels, const auto& run) { kernels.add(run); }},
    {"sgd",
     [](const auto& kernels, const auto& run) { kernels.sgd({.rate = 0.1f, .decay = 0}, run); }},
    {"momentum",
     [](const auto& kernels, const auto& run) {
       kernels.momentum({0.1f, 0.9f, 0}, run);
     }},
    {"adagrad",
     [](const auto& kernels, const auto& run) {
       kernels.adagrad({0.1f, 0, 1e-10f}, run);
     }},
    {"adam",
     [](const auto& kernels, const auto& run) {
       kernels.adam({0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 0.01f, 31.6f, 0, 1}, run);
     }},
    {"ftrl", [](const auto& kernels, const auto& run) {
       kernels.ftrl({0.1f, 1, 0.5f, 0.1f}, run);
     }}};

void RegisterLevel(Level level) {
  const auto name = [&](const std::string& what) {
    return "BM_" + what + "/" + std::string(Name(level));
  };
  benchmark::RegisterBenchmark(name("Sum/8/float32").c_str(), BM_Sum<float>, level, 8);
  benchmark::RegisterBenchmark(name("Sum/8/float64").c_str(), BM_Sum<double>, level, 8);
  benchmark::RegisterBenchmark(name("Sum/8/float16").c_str(), BM_Sum<Float16>, level, 8);
  benchmark::RegisterBenchmark(name("Sum/8/bfloat16").c_str(), BM_Sum<BFloat16>, level, 8);
  benchmark::RegisterBenchmark(name("Sum/2/float32").c_str(), BM_Sum<float>, level, 2);
  benchmark::RegisterBenchmark(name("Halves/float16").c_str(), BM_Halves<Float16>, level);
  benchmark::RegisterBenchmark(name("Halves/bfloat16").c_str(), BM_Halves<BFloat16>, level);
  for (const NamedUpdate& update : kUpdates) {
    benchmark::RegisterBenchmark(name(std::string("Update/") + update.name).c_str(), BM_Update,
                                 level, update.update);
  }
}

[[maybe_unused]] const bool registered = [] {
  benchmark::RegisterBenchmark("BM_Memcpy", BM_Memcpy);
  for (const Level level : LevelsHere()) RegisterLevel(level);
  return true;
}();

}  // namespace
}  // namespace leeway::compress
