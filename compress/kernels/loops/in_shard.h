// The check that keys lie in a shard: proto::ShardOfKey of each, in a form that vectorises.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_IN_SHARD_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_IN_SHARD_H_

#include <cstddef>
#include <cstdint>

#include "compress/kernels/loops/vectors.h"

namespace leeway::compress {
namespace {

// As runtime::MixKey.
LEEWAY_INLINE std::uint64_t Mixed(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

// The bits in which any of their shards differs from that one.
LEEWAY_INLINE std::uint64_t Differing(const std::uint64_t* keys, std::size_t size,
                                      std::uint64_t shard) {
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < size; ++i) differ |= Mixed(keys[i]) ^ shard;
  return differ;
}

// Keys that have just been received are prefetched, as in non_finite.h.
bool AllInShard(const std::uint64_t* keys, std::size_t size, std::uint64_t mask,
                std::uint64_t shard) {
  constexpr std::size_t kStretch = 32;  // keys
  constexpr std::size_t kAhead = 256;
  constexpr std::size_t kKeysInLine = 8;
  std::uint64_t differ = 0;
  std::size_t i = 0;
  for (; i + kStretch + kAhead <= size; i += kStretch) {
    for (std::size_t at = 0; at < kStretch; at += kKeysInLine) {
      __builtin_prefetch(keys + i + kAhead + at);
    }
    differ |= Differing(keys + i, kStretch, shard);
  }
  differ |= Differing(keys + i, size - i, shard);
  return (differ & mask) == 0;
}

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_IN_SHARD_H_
