// Micro-benchmarks of codecs over 64 MiB in blocks. Bytes are those of the input floats, as in
// BM_CodecCopy, which is the comparison. Codecs that are not registered are left out.
#include <memory>
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "codec/blocks.h"
#include "compress/registry.h"

namespace leeway::bench {
namespace {

constexpr const char* kCodecs[] = {
    "none",     "fp16",      "bf16",         "int8",     "onebit",     "qsgd:bits=4", "natural",
    "terngrad", "topk:0.01", "randomk:0.01", "powersgd", "powersgd:4", "sketch"};

// One at a time, since each takes more than 128 MiB.
Blocks* BlocksOf(const std::string& codec, std::string* why_not) {
  static auto* const kept = new std::pair<std::string, std::unique_ptr<Blocks>>;
  if (kept->second == nullptr || kept->first != codec) {
    kept->second.reset();
    auto made = Blocks::Make(codec);
    if (!made.ok()) {
      *why_not = std::string(made.status().message());
      return nullptr;
    }
    *kept = {codec, *std::move(made)};
  }
  return kept->second.get();
}

using Do = absl::Status (*)(Blocks& blocks, std::size_t block);

void BM_Codec(benchmark::State& state, const std::string& codec, Do work, bool changes) {
  std::string why;
  Blocks* const blocks = BlocksOf(codec, &why);
  if (blocks == nullptr) {
    state.SkipWithError(why.c_str());
    return;
  }
  std::size_t block = 0;
  for (auto _ : state) {
    if (changes && block == 0) {
      state.PauseTiming();
      blocks->Fill();
      state.ResumeTiming();
    }
    if (const absl::Status done = work(*blocks, block); !done.ok()) {
      state.SkipWithError(std::string(done.message()).c_str());
      return;
    }
    benchmark::ClobberMemory();
    block = (block + 1) % Blocks::kCount;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(Blocks::kBytes));
}

[[maybe_unused]] const bool registered = [] {
  const auto add = [](const std::string& name, const std::string& codec, Do work, bool changes) {
    benchmark::RegisterBenchmark(name.c_str(), BM_Codec, codec, work, changes);
  };
  const Do copy = [](Blocks& blocks, std::size_t block) {
    blocks.Copy(block);
    return absl::OkStatus();
  };
  const Do dense_add = [](Blocks& blocks, std::size_t block) {
    blocks.Add(block);
    return absl::OkStatus();
  };
  add("BM_CodecCopy", "none", copy, false);
  add("BM_CodecDenseAdd", "none", dense_add, true);
  for (const std::string codec : kCodecs) {
    if (!compress::MakeCodec(codec).ok()) continue;
    add(
        "BM_Encode/" + codec, codec,
        [](Blocks& blocks, std::size_t block) { return blocks.Encode(block); }, false);
    add(
        "BM_EncodeAndSubtract/" + codec, codec,
        [](Blocks& blocks, std::size_t block) { return blocks.EncodeAndSubtract(block); }, true);
    add(
        "BM_Decode/" + codec, codec,
        [](Blocks& blocks, std::size_t block) { return blocks.Decode(block); }, false);
    add(
        "BM_DecodeAdd/" + codec, codec,
        [](Blocks& blocks, std::size_t block) { return blocks.DecodeAdd(block); }, true);
  }
  return true;
}();

}  // namespace
}  // namespace leeway::bench
