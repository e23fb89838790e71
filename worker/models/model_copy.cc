#include "worker/models/model_copy.h"

#include <cstring>
#include <utility>

#include "proto/messages/layout.h"

namespace leeway::worker {
namespace {

std::uint64_t BytesOf(const TableInfo& table) {
  return table.spec.NumElements() * SizeOf(table.spec.dtype);
}

// The buffers of replies are the transport's, which wants them back: what is kept is copied.
class FetchSink final : public PullSink {
 public:
  explicit FetchSink(std::shared_ptr<ModelCopy::Fetched> fetched) : fetched_(std::move(fetched)) {}
  absl::Status Take(std::size_t index, const proto::Reply& reply,
                    std::span<const runtime::Buffer> payload) override {
    ModelCopy::Fetched::Block& block = fetched_->blocks[index];
    fetched_->bytes_received += payload[0].size();
    if (!reply.coded) {
      block.whole = runtime::Buffer::CopyOf(payload[0].data(), payload[0].size());
      return absl::OkStatus();
    }
    if (reply.parts.empty()) return absl::OkStatus();
    return absl::InternalError("a difference of a kind that this reader does not know");
  }

 private:
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
    sliced.sink = std::make_unique<FetchSink>(fetched);
    fetched_.push_back(fetched);
    pulls.push_back(std::move(sliced));
  }
  return pulls;
}

void ModelCopy::Apply() {
  for (std::size_t i = 0; i < fetched_.size(); ++i) {
    const TableInfo& table = *tables_[i];
    const std::uint64_t block_bytes =
        proto::BlockElements(table.spec.dtype, table.block_bytes) * SizeOf(table.spec.dtype);
    bytes_received_ += fetched_[i]->bytes_received;
    for (std::size_t block = 0; block < fetched_[i]->blocks.size(); ++block) {
      const runtime::Buffer& whole = fetched_[i]->blocks[block].whole;
      if (whole.empty()) continue;
      std::memcpy(values_[i].data() + block * block_bytes, whole.data(), whole.size());
    }
  }
  fetched_.clear();
  version_ = fetched_version_;
}

}  // namespace leeway::worker
