// Random is a generator of seeded random numbers that are the same on every machine and with every
// standard library; RandomAt and StableHash are pure functions with the same property.
#ifndef LEEWAY_RUNTIME_BASE_RANDOM_H_
#define LEEWAY_RUNTIME_BASE_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// A stream of numbers: xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64. One
// thread.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t Next();
  double Uniform();                          // [0, 1), 53 bits
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), unbiased; bound > 0
  double Normal();  // standard normal: mean 0, standard deviation 1 (Box–Muller)

 private:
  std::uint64_t state_[4];
};

// Random numbers by index: each (seed, stream, index) always gives the same number, in whatever
// order they are asked for. Computed by SplitMix64's finaliser over the three. Any thread.
std::uint64_t RandomAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
double UniformAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);  // [0, 1)
// Standard normal.
double NormalAt(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

// 64-bit hashes that are the same on all machines. Of a text: FNV-1a, finished by SplitMix64's
// finaliser. Of a number: that finaliser alone, which is a bijection, so no two numbers collide.
std::uint64_t StableHash(absl::string_view text);
std::uint64_t StableHash(std::uint64_t key);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_RANDOM_H_
