// Micro-benchmarks of differences between two versions of a bf16 model, in blocks, over 1 GB. Bytes
// are those of the model, as in BM_DifferenceMemcpy, which is the comparison. "size" is the share
// of the model's bytes that the messages have, "changed" that of its elements that have changed.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "compress/differences/difference.h"
#include "compress/differences/digest.h"

namespace leeway::bench {
namespace {

constexpr std::size_t kBlockBytes = 512 << 10, kBlocks = 2048;
constexpr std::size_t kModelBytes = kBlocks * kBlockBytes;
constexpr std::size_t kOwnBlocks = 8;  // the others repeat them
constexpr std::size_t kBf16Bytes = sizeof(std::uint16_t);

std::uint16_t NearestBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// What changes from one version to the next.
enum class Step {
  kAdamw,   // AdamW, of weights with deviation 0.02 and gradients that are noise
  kRandom,  // one element in a hundred gets random bits
};

struct AdamwState {
  float value, m = 0, v = 0;
  float decay1 = 1, decay2 = 1;
};

// One step in float32; the state is that of many steps before it.
float StepOfAdamw(AdamwState* state, float gradient, float rate) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kDecay = 0.01f;
  state->m = kBeta1 * state->m + (1 - kBeta1) * gradient;
  state->v = kBeta2 * state->v + (1 - kBeta2) * gradient * gradient;
  state->decay1 *= kBeta1, state->decay2 *= kBeta2;
  const float m = state->m / (1 - state->decay1), v = state->v / (1 - state->decay2);
  state->value -= rate * (m / (std::sqrt(v) + 1e-8f) + kDecay * state->value);
  return state->value;
}

class Models {
 public:
  Models(Step step, float rate)
      : before_(kModelBytes), after_(kModelBytes), copy_(kModelBytes), messages_(kBlocks) {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kOwnBlocks * kBlockBytes; i += kBf16Bytes) {
      const auto [old, now] = Element(step, rate, &random);
      std::memcpy(&before_[i], &old, sizeof(old));
      std::memcpy(&after_[i], &now, sizeof(now));
      changed_ += old != now ? 1 : 0;
    }
    for (std::size_t block = kOwnBlocks; block < kBlocks; ++block) {
      std::memcpy(Block(&before_, block).data(), Block(&before_, block % kOwnBlocks).data(),
                  kBlockBytes);
      std::memcpy(Block(&after_, block).data(), Block(&after_, block % kOwnBlocks).data(),
                  kBlockBytes);
    }
    copy_ = before_;
    for (std::size_t block = 0; block < kBlocks; ++block) Encode(block);
  }

  bool Encode(std::size_t block) {
    messages_[block].clear();
    return compress::EncodeDifference(Block(&before_, block), Block(&after_, block), kBf16Bytes,
                                      &messages_[block]);
  }
  bool Apply(std::size_t block) {
    return compress::ApplyDifference(messages_[block], kBf16Bytes, Block(&copy_, block)).ok();
  }
  bool Copy(std::size_t block) {
    std::memcpy(Block(&copy_, block).data(), Block(&before_, block).data(), kBlockBytes);
    return true;
  }
  bool Digest(std::size_t block) {
    benchmark::DoNotOptimize(compress::DigestOfBlock(1, block, Block(&before_, block)));
    return true;
  }
  bool Merge(std::size_t block) {
    const std::span<const std::byte> messages[] = {messages_[block],
                                                   messages_[(block + 1) % kBlocks]};
    std::vector<std::byte> merged;
    return compress::MergeDifferences(messages, kBf16Bytes, kBlockBytes / kBf16Bytes, &merged)
        .value_or(false);
  }

  double size() const {
    std::size_t bytes = 0;
    for (const std::vector<std::byte>& message : messages_) bytes += message.size();
    return static_cast<double>(bytes) / static_cast<double>(kModelBytes);
  }
  double changed() const {
    return static_cast<double>(changed_ * kBf16Bytes) / (kOwnBlocks * kBlockBytes);
  }

 private:
  struct Versions {
    std::uint16_t old, now;
  };

  static Versions Element(Step step, float rate, std::mt19937_64* random) {
    std::normal_distribution<float> normal;
    AdamwState weight{.value = 0.02f * normal(*random)};
    if (step == Step::kRandom) {
      const std::uint16_t old = NearestBf16(weight.value);
      const std::uint64_t bits = (*random)();
      return {old, (bits >> 16) % 100 == 0 ? static_cast<std::uint16_t>(bits) : old};
    }
    constexpr int kSteps = 30;
    std::uint16_t old = 0;
    for (int i = 0; i < kSteps; ++i) {
      old = NearestBf16(weight.value);
      StepOfAdamw(&weight, normal(*random), rate);
    }
    return {old, NearestBf16(weight.value)};
  }

  static std::span<std::byte> Block(std::vector<std::byte>* model, std::size_t block) {
    return {model->data() + block * kBlockBytes, kBlockBytes};
  }

  std::vector<std::byte> before_, after_, copy_;
  std::vector<std::vector<std::byte>> messages_;
  std::size_t changed_ = 0;
};

// One at a time, since each takes more than 3 GB.
Models& ModelsOf(Step step, float rate) {
  static auto* const kept = new std::unique_ptr<Models>;
  static Step kept_step;
  static float kept_rate;
  if (*kept == nullptr || kept_step != step || kept_rate != rate) {
    kept->reset();
    *kept = std::make_unique<Models>(step, rate);
    kept_step = step, kept_rate = rate;
  }
  return **kept;
}

// All blocks of the model in an iteration.
void BM_Difference(benchmark::State& state, Step step, float rate,
                   bool (Models::*work)(std::size_t block)) {
  Models& models = ModelsOf(step, rate);
  for (auto _ : state) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      if (!(models.*work)(block)) {
        state.SkipWithError("a block has no difference, or another one");
        return;
      }
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kModelBytes));
  state.counters["size"] = models.size();
  state.counters["changed"] = models.changed();
}

[[maybe_unused]] const bool registered = [] {
  const struct Tried {
    const char* name;
    Step step;
    float rate;
  } all[] = {{"adamw:1e-6", Step::kAdamw, 1e-6f},
             {"adamw:3e-6", Step::kAdamw, 3e-6f},
             {"random", Step::kRandom, 0}};
  for (const Tried& tried : all) {
    const auto add = [&](const std::string& what, bool (Models::*work)(std::size_t)) {
      benchmark::RegisterBenchmark((what + "/" + tried.name).c_str(), BM_Difference, tried.step,
                                   tried.rate, work);
    };
    add("BM_DifferenceMemcpy", &Models::Copy);
    add("BM_DifferenceEncode", &Models::Encode);
    add("BM_DifferenceApply", &Models::Apply);
    add("BM_DifferenceMerge", &Models::Merge);
    add("BM_DifferenceDigest", &Models::Digest);
  }
  return true;
}();

}  // namespace
}  // namespace leeway::bench
