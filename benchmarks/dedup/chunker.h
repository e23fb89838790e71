// Chunker cuts bytes into content-defined chunks, so that an insertion or a removal moves only the
// cuts beside it.
//
// FastCDC (Xia et al., USENIX ATC 2016, sections 3.2 to 3.5) over the gear hash (Xia et al.,
// Performance Evaluation 79, 2014): h ← 2h + G[byte], one shift, one addition and one look-up a
// byte. A chunk ends where the high bits of h under a mask are 0, with two bits more in the mask
// before the average size is reached and two bits fewer behind it (normalized chunking, level 2).
// Cuts are at multiples of 4 bytes, so that chunks hold whole floats.
#ifndef LEEWAY_BENCHMARKS_DEDUP_CHUNKER_H_
#define LEEWAY_BENCHMARKS_DEDUP_CHUNKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leeway::bench {

class Chunker {
 public:
  // average_bytes: a power of two from 64 to 2^20. Chunks have a quarter of it to eight times as
  // much; the last one of a message may be smaller.
  explicit Chunker(std::size_t average_bytes);

  // The bytes of the first chunk; 0: there are no bytes.
  std::size_t Next(std::span<const std::byte> bytes) const;

 private:
  std::array<std::uint64_t, 256> gear_;
  std::size_t average_, least_, most_;
  std::uint64_t strict_, loose_;  // masks, before and behind the average
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_DEDUP_CHUNKER_H_
