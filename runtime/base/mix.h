// What StableHash (runtime/base/random.h) computes of a key, to be had without a call.
#ifndef LEEWAY_RUNTIME_BASE_MIX_H_
#define LEEWAY_RUNTIME_BASE_MIX_H_

#include <cstdint>

namespace leeway::runtime {

// SplitMix64's step: 2^64 over the golden ratio.
inline constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

// SplitMix64's finaliser (Steele, Lea and Flood 2014, with Stafford's variant 13).
inline std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline std::uint64_t MixKey(std::uint64_t key) { return Mix(key + kGamma); }

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_MIX_H_
