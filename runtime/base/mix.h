// MixKey is the inline form of StableHash(std::uint64_t) (runtime/base/random.h), for loops over
// keys.
#ifndef LEEWAY_RUNTIME_BASE_MIX_H_
#define LEEWAY_RUNTIME_BASE_MIX_H_

#include <cstdint>

namespace leeway::runtime {

// SplitMix64's increment: 2^64 divided by the golden ratio.
inline constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

// SplitMix64's finaliser (Steele, Lea and Flood 2014, with Stafford's variant 13).
inline std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// StableHash of a number.
inline std::uint64_t MixKey(std::uint64_t key) { return Mix(key + kGamma); }

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_MIX_H_
