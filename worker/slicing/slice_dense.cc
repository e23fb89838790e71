// Slicing of dense tables: a tensor is cut into blocks (proto/messages/layout.h), and every block
// is one request, whose payload points into the user's array. A small tensor is copied, which costs
// less than to export it.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "runtime/memory/copy_ahead.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

constexpr std::uint64_t kCopiedBytesMax = 2048;

class DenseSink final : public PullSink {
 public:
  DenseSink(void* result, std::uint64_t block_bytes)
      : result_(static_cast<std::byte*>(result)), block_bytes_(block_bytes) {}
  std::byte* Place(std::size_t index) override { return result_ + index * block_bytes_; }
  absl::Status Take(std::size_t index, const proto::Reply&,
                    std::span<const runtime::Buffer> payload) override {
    if (payload[0].data() == Place(index)) return absl::OkStatus();  // received straight into it
    runtime::CopyAhead(payload[0].data(), payload[0].size(), Place(index));
    return absl::OkStatus();
  }

 private:
  std::byte* result_;
  std::uint64_t block_bytes_;
};

// For a table whose replies are encoded. A reply may still be plain.
class CodedDenseSink final : public PullSink {
 public:
  CodedDenseSink(const Access& access, std::uint64_t block_bytes)
      : coding_(access.table->coding),
        result_(static_cast<std::byte*>(access.result)),
        block_bytes_(block_bytes) {}
  absl::Status Take(std::size_t index, const proto::Reply& reply,
                    std::span<const runtime::Buffer> payload) override {
    std::byte* const to = result_ + index * block_bytes_;
    if (reply.coded) {
      return coding_->pulls.Take(index, reply.elements, reply.parts, payload[0].bytes(), to);
    }
    runtime::CopyAhead(payload[0].data(), payload[0].size(), to);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<TableCoding> coding_;
  std::byte* const result_;
  const std::uint64_t block_bytes_;
};

// Encodes each block when it is about to be sent; until then its payload is the plain values.
class CodedDenseSource final : public PushSource {
 public:
  explicit CodedDenseSource(std::shared_ptr<TableCoding> coding) : coding_(std::move(coding)) {}
  void Fill(std::size_t, const PushTerms& terms, Piece* piece) override {
    const std::optional<std::uint32_t> choice = coding_->ChoiceAt(terms.clock);
    if (!choice.has_value()) return;
    coding_->TakeSample(piece->payload.back().data(), piece->elements);
    EncodedValues encoded = coding_->pushes.EncodeBlock(
        *choice, piece->block, piece->payload.back().data(), piece->elements, terms.learning_rate);
    if (encoded.bytes.empty()) return;
    if (encoded.traces.has_value()) {
      piece->refundable.reset(new Refundable{.traces = *encoded.traces,
                                             .given = std::move(piece->payload.back()),
                                             .learning_rate = terms.learning_rate});
    }
    piece->codec = encoded.codec;
    piece->payload.back() = std::move(encoded.bytes);
  }

 private:
  const std::shared_ptr<TableCoding> coding_;
};

// The plain payloads of blocks: parts of the user's array, or of a copy of it.
class PlainParts {
 public:
  PlainParts(const Access& access, std::uint64_t bytes, const std::shared_ptr<Poster>& poster,
             Sliced* sliced)
      : values_(static_cast<const std::byte*>(access.values)),
        bytes_(bytes),
        copies_(access.copy || bytes <= kCopiedBytesMax),
        sliced_(sliced) {
    if (copies_) {
      copy_ = runtime::Buffer::CopyOf(values_, bytes);
    } else {
      sliced_->memory = UserMemoryHold(poster);
    }
  }
  runtime::Buffer Part(std::uint64_t offset, std::uint64_t size) {
    if (copies_ && size == bytes_) return std::move(copy_);
    return copies_ ? copy_.Part(offset, size) : sliced_->memory->Export(values_ + offset, size);
  }

 private:
  const std::byte* const values_;
  const std::uint64_t bytes_;
  const bool copies_;
  runtime::Buffer copy_;
  Sliced* const sliced_;
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
  const bool push = proto::HasPush(access.op);
  const bool coded = table.coding != nullptr;
  std::optional<PlainParts> parts;
  if (push && coded) sliced.source = std::make_unique<CodedDenseSource>(table.coding);
  if (push) parts.emplace(access, access.size * width, poster, &sliced);

  sliced.pieces.resize(proto::NumBlocks(elements, block_elements));
  for (std::uint64_t i = 0; i < sliced.pieces.size(); ++i) {
    Piece& piece = sliced.pieces[i];
    piece.shard = proto::ShardOfBlock(table.id, i, table.num_shards);
    piece.block = i;
    piece.elements = proto::ElementsInBlock(elements, block_elements, i);
    piece.reply_elements = piece.elements;
    if (parts) piece.payload.push_back(parts->Part(i * block_bytes, piece.elements * width));
  }
  if (proto::HasPull(access.op)) {
    if (coded && table.coding->codecs.AnyHas(&compress::TableCodec::codes_replies)) {
      sliced.sink = std::make_unique<CodedDenseSink>(access, block_bytes);
    } else {
      sliced.sink = std::make_unique<DenseSink>(access.result, block_bytes);
    }
  }
  return sliced;
}

}  // namespace leeway::worker
