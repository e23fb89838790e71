// The digest of a model's values: the sum, modulo 2^64, of the digests of all its blocks, in any
// order. Where one block changes, the digest of the model changes by the difference of that
// block's.
//
// It finds differences that come from faults, not those that somebody looks for.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_DIGEST_H_
#define LEEWAY_COMPRESS_DIFFERENCES_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace leeway::compress {

// XXH3 of the bytes, with a seed that the table and the number of the block make: blocks that have
// changed places have another sum. Equal on all machines.
std::uint64_t DigestOfBlock(std::uint64_t table, std::uint64_t block,
                            std::span<const std::byte> bytes);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_DIGEST_H_
