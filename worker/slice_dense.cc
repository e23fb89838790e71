// A tensor is cut into the blocks that proto/layout.h says; every block is one request, whose
// payload points into the user's array. A small tensor is copied: that costs less than to lend it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/layout.h"
#include "runtime/copy_ahead.h"
#include "worker/slice.h"

namespace leeway::worker {
namespace {

constexpr std::uint64_t kCopiedBytesMax = 2048;

class DenseSink final : public PullSink {
 public:
  DenseSink(void* result, std::uint64_t block_bytes)
      : result_(static_cast<std::byte*>(result)), block_bytes_(block_bytes) {}
  std::byte* Place(std::size_t index) override { return result_ + index * block_bytes_; }
  void Take(std::size_t index, std::span<const runtime::Buffer> payload) override {
    if (payload[0].data() == Place(index)) return;  // it has landed there
    runtime::CopyAhead(payload[0].data(), payload[0].size(), Place(index));
  }

 private:
  std::byte* result_;
  std::uint64_t block_bytes_;
};

}  // namespace

absl::StatusOr<Sliced> SliceDense(const Access& access, const std::shared_ptr<Poster>& poster) {
  const TableInfo& table = *access.table;
  const std::uint64_t width = SizeOf(table.spec.dtype);
  const std::uint64_t elements = table.spec.NumElements();
  const std::uint64_t block_elements = proto::BlockElements(table.spec.dtype, table.block_bytes);
  const std::uint64_t block_bytes = block_elements * width;
  if (std::min(block_bytes, elements * width) > table.message_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table.spec.name, "': a block of ", block_bytes,
                     " bytes is more than LEEWAY_MESSAGE_BYTES_MAX, ", table.message_bytes_max));
  }

  Sliced sliced{.table = access.table, .op = access.op};
  const auto* values = static_cast<const std::byte*>(access.values);
  const bool push = proto::HasPush(access.op);
  const std::uint64_t bytes = push ? access.size * width : 0;
  const bool copies = access.copy || bytes <= kCopiedBytesMax;
  runtime::Buffer copy;
  if (bytes <= kCopiedBytesMax) {
    copy = runtime::Buffer::CopyOf(values, bytes);
  } else if (copies) {
    std::byte* to = nullptr;
    copy = runtime::Buffer::Allocate(bytes, &to);
    std::memcpy(to, values, bytes);
  } else if (push) {
    sliced.memory = UserMemoryHold(poster);
  }
  const auto part = [&](std::uint64_t offset, std::uint64_t size) {
    if (copies && size == bytes) return std::move(copy);
    return copies ? copy.Part(offset, size) : sliced.memory->Lend(values + offset, size);
  };

  sliced.pieces.resize(proto::NumBlocks(elements, block_elements));
  for (std::uint64_t i = 0; i < sliced.pieces.size(); ++i) {
    Piece& piece = sliced.pieces[i];
    piece.shard = proto::ShardOfBlock(table.id, i, table.num_shards);
    piece.block = i;
    piece.elements = proto::ElementsInBlock(elements, block_elements, i);
    piece.reply_elements = piece.elements;
    if (push) piece.payload.push_back(part(i * block_bytes, piece.elements * width));
  }
  if (proto::HasPull(access.op)) {
    sliced.sink = std::make_unique<DenseSink>(access.result, block_bytes);
  }
  return sliced;
}

}  // namespace leeway::worker
