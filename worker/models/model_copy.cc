#include "worker/models/model_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compress/differences/difference.h"
#include "compress/differences/digest.h"
#include "proto/messages/layout.h"
#include "runtime/base/status_macros.h"

namespace leeway::worker {
namespace {

std::uint64_t BytesOf(const TableInfo& table) {
  return table.spec.NumElements() * SizeOf(table.spec.dtype);
}

std::uint64_t BlockBytesOf(const TableInfo& table) {
  return proto::BlockElements(table.spec.dtype, table.block_bytes) * SizeOf(table.spec.dtype);
}

// The buffers of replies are the transport's, which wants them back: what is kept is copied.
class FetchSink final : public PullSink {
 public:
  FetchSink(std::size_t element_bytes, std::shared_ptr<ModelCopy::Fetched> fetched)
      : element_bytes_(element_bytes), fetched_(std::move(fetched)) {}
  absl::Status Take(std::size_t index, const proto::Reply& reply,
                    std::span<const runtime::Buffer> payload) override {
    ModelCopy::Fetched::Block& block = fetched_->blocks[index];
    fetched_->bytes_received += payload[0].size();
    block.digest = reply.digest;
    if (!reply.coded) {
      block.whole = runtime::Buffer::CopyOf(payload[0].data(), payload[0].size());
      return absl::OkStatus();
    }
    if (reply.parts.empty()) return absl::OkStatus();
    if (reply.parts.size() != 1 || reply.parts[0].codec != proto::kDifferenceCodec) {
      return absl::InternalError("a version's block is encoded in a way that is not known here");
    }
    LEEWAY_RETURN_IF_ERROR(
        compress::CheckDifference(payload[0].bytes(), element_bytes_, reply.elements));
    block.difference = runtime::Buffer::CopyOf(payload[0].data(), payload[0].size());
    return absl::OkStatus();
  }

 private:
  const std::size_t element_bytes_;
  const std::shared_ptr<ModelCopy::Fetched> fetched_;
};

}  // namespace

ModelCopy::ModelCopy(std::vector<std::shared_ptr<const TableInfo>> tables)
    : tables_(std::move(tables)) {
  for (const auto& table : tables_) values_.emplace_back(BytesOf(*table));
}

std::vector<Sliced> ModelCopy::Fetch(const proto::PublishedVersion& version) {
  fetched_version_ = version;
  fetched_.clear();
  std::vector<Sliced> pulls;
  for (const auto& table : tables_) {
    const std::uint64_t elements = table->spec.NumElements();
    const std::uint64_t block_elements =
        proto::BlockElements(table->spec.dtype, table->block_bytes);
    const auto fetched = std::make_shared<Fetched>();
    Sliced sliced{.table = table, .op = proto::Op::kPull};
    sliced.pieces.resize(proto::NumBlocks(elements, block_elements));
    fetched->blocks.resize(sliced.pieces.size());
    for (std::uint64_t i = 0; i < sliced.pieces.size(); ++i) {
      Piece& piece = sliced.pieces[i];
      piece.shard = proto::ShardOfBlock(table->id, i, table->num_shards);
      piece.block = i;
      piece.elements = proto::ElementsInBlock(elements, block_elements, i);
      piece.reply_elements = piece.elements;
      piece.publication = version.publication;
      piece.have = version_.publication;
    }
    sliced.sink = std::make_unique<FetchSink>(SizeOf(table->spec.dtype), fetched);
    fetched_.push_back(fetched);
    pulls.push_back(std::move(sliced));
  }
  return pulls;
}

void ModelCopy::Apply() {
  digest_ = 0;
  for (std::size_t i = 0; i < fetched_.size(); ++i) {
    const std::uint64_t block_bytes = BlockBytesOf(*tables_[i]);
    const std::size_t width = SizeOf(tables_[i]->spec.dtype);
    bytes_received_ += fetched_[i]->bytes_received;
    for (std::size_t b = 0; b < fetched_[i]->blocks.size(); ++b) {
      const auto& [whole, difference, digest] = fetched_[i]->blocks[b];
      digest_ += digest;
      const std::span<std::byte> to = BlockOf(i, b, block_bytes);
      if (!whole.empty()) {
        std::memcpy(to.data(), whole.data(), whole.size());
      } else if (!difference.empty()) {
        // It was checked when it came.
        compress::ApplyDifference(difference.bytes(), width, to).IgnoreError();
      }
    }
  }
  unverified_ = std::exchange(fetched_, {});
  version_ = fetched_version_;
}

absl::Status ModelCopy::Verify() {
  const std::vector<std::shared_ptr<Fetched>> changed = std::exchange(unverified_, {});
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const std::uint64_t block_bytes = BlockBytesOf(*tables_[i]);
    for (std::size_t b = 0; b < changed[i]->blocks.size(); ++b) {
      const auto& [whole, difference, digest] = changed[i]->blocks[b];
      if (whole.empty() && difference.empty()) continue;
      const std::uint64_t found =
          compress::DigestOfBlock(tables_[i]->id, b, BlockOf(i, b, block_bytes));
      if (found == digest) continue;
      const std::uint64_t version = std::exchange(version_, {}).version;
      return absl::DataLossError(absl::StrCat(
          "block ", b, " of table '", tables_[i]->spec.name, "' is not that of version ", version,
          ": its digest is ", found, ", should be ", digest, "; the next fetch fetches all of it"));
    }
  }
  return absl::OkStatus();
}

std::span<std::byte> ModelCopy::BlockOf(std::size_t table, std::size_t block,
                                        std::uint64_t block_bytes) {
  const std::span<std::byte> values(values_[table]);
  const std::size_t from = block * block_bytes;
  return values.subspan(from, std::min<std::size_t>(block_bytes, values.size() - from));
}

}  // namespace leeway::worker
