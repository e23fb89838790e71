// The layout of tables: which shard holds a dense block or a sparse key. Workers and servers
// compute it alike from the table's id, its description and the number of shards.
#ifndef LEEWAY_PROTO_MESSAGES_LAYOUT_H_
#define LEEWAY_PROTO_MESSAGES_LAYOUT_H_

#include <algorithm>
#include <cstdint>

#include "leeway/table_spec.h"
#include "runtime/base/random.h"

namespace leeway::proto {

// Elements of a full dense block: a multiple of 16, at least 16.
inline std::uint64_t BlockElements(DType dtype, std::uint64_t block_bytes) {
  return std::max<std::uint64_t>(16, block_bytes / SizeOf(dtype) / 16 * 16);
}

// The number of blocks of a tensor with `elements` elements and `block_elements` in a full block.
inline std::uint64_t NumBlocks(std::uint64_t elements, std::uint64_t block_elements) {
  return (elements + block_elements - 1) / block_elements;
}
inline std::uint64_t NumBlocks(const TableSpec& spec, std::uint64_t block_bytes) {
  return NumBlocks(spec.NumElements(), BlockElements(spec.dtype, block_bytes));
}

// Elements of block `index`; the last one may be short. `index` < NumBlocks.
inline std::uint64_t ElementsInBlock(std::uint64_t elements, std::uint64_t block_elements,
                                     std::uint64_t index) {
  return std::min(block_elements, elements - index * block_elements);
}
inline std::uint64_t ElementsInBlock(const TableSpec& spec, std::uint64_t block_bytes,
                                     std::uint64_t index) {
  return ElementsInBlock(spec.NumElements(), BlockElements(spec.dtype, block_bytes), index);
}

// Blocks go to the shards in turn. Each table starts at another shard, so that many small tables
// spread as well as one large one.
inline std::uint32_t ShardOfBlock(std::uint32_t table, std::uint64_t block,
                                  std::uint32_t num_shards) {
  return static_cast<std::uint32_t>((runtime::StableHash(std::uint64_t{table}) + block) %
                                    num_shards);
}

inline std::uint32_t ShardOfKey(std::uint64_t key, std::uint32_t num_shards) {
  return static_cast<std::uint32_t>(runtime::StableHash(key) % num_shards);
}

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_LAYOUT_H_
