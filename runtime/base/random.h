// Seeded random numbers that are the same on every machine and with every standard library.
#ifndef LEEWAY_RUNTIME_BASE_RANDOM_H_
#define LEEWAY_RUNTIME_BASE_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// A stream: xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t Next();
  double Uniform();                          // [0, 1), 53 bits
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), unbiased; bound > 0
  double Normal();                           // mean 0, deviation 1 (Box–Muller)

 private:
  std::uint64_t state_[4];
};

// Numbers by place instead of by order: the same (seed, stream, index) gives the same number
// whoever asks, in whatever order. SplitMix64's finaliser over the three.
std::uint64_t RandomAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);  // [0, 1)
double NormalAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// 64-bit hashes that every side computes alike: of a text FNV-1a, finished by SplitMix64's mixer;
// of a number that mixer alone, under which no two numbers collide.
std::uint64_t StableHash(absl::string_view text);
std::uint64_t StableHash(std::uint64_t key);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_RANDOM_H_
