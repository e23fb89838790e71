#include "compress/differences/digest.h"

#include <xxhash.h>

#include "runtime/base/mix.h"

namespace leeway::compress {

std::uint64_t DigestOfBlock(std::uint64_t table, std::uint64_t block,
                            std::span<const std::byte> bytes) {
  const std::uint64_t seed = runtime::MixKey(runtime::MixKey(table) ^ block);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace leeway::compress
