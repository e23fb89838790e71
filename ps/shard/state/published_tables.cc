#include "ps/shard/state/published_tables.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/differences/difference.h"
#include "compress/differences/digest.h"
#include "proto/messages/layout.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

// ---- differences ----

const runtime::Buffer* KeptDifferences::Find(const Key& key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? nullptr : &found->second;
}

void KeptDifferences::Keep(const Key& key, runtime::Buffer difference) {
  bytes_ += difference.size();
  kept_.emplace(key, std::move(difference));
  in_turn_.push_back(key);
  while (bytes_ > kBytesMax && in_turn_.size() > 1) {
    Drop(in_turn_.front());
    in_turn_.pop_front();
  }
}

void KeptDifferences::Drop(const Key& key) {
  const auto found = kept_.find(key);
  bytes_ -= found->second.size();
  kept_.erase(found);
}

void KeptDifferences::Forget(std::uint64_t publication) {
  std::erase_if(in_turn_, [&](const Key& key) {
    const bool goes = key.from == publication || key.to == publication;
    if (goes) Drop(key);
    return goes;
  });
}

void KeptDifferences::Clear() {
  kept_.clear();
  in_turn_.clear();
  bytes_ = 0;
}

// ---- what is frozen ----

void PublishedTables::Freeze(const Table& table, ShardStores* stores, std::uint64_t publication) {
  Frozen frozen;
  for (FrozenPiece& piece : stores->Of(table)->Freeze().pieces) {
    frozen.blocks[piece.block] = {.values = std::move(piece.values)};
  }
  publications_[publication].insert_or_assign(table.id(), std::move(frozen));
}

void PublishedTables::Keep(const std::set<std::uint64_t>& kept) {
  if (kept.empty()) return;
  std::erase_if(publications_, [&](const auto& one) {
    const bool goes = one.first <= *kept.rbegin() && !kept.contains(one.first);
    if (goes) differences_.Forget(one.first);
    return goes;
  });
}

// ---- for a replica that joins ----

namespace {

// A block that is as in the state, or none at all.
LogEntry AsIsEntry(const Table& table, std::uint64_t publication) {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kPublishedAsIs;
  entry.header.version = publication;
  entry.header.table = table.id();
  return entry;
}

LogEntry BlockEntry(const Table& table, std::uint64_t publication, const runtime::Buffer& values) {
  LogEntry entry = AsIsEntry(table, publication);
  entry.header.kind = proto::LogEntryKind::kPublishedBlock;
  entry.header.table_kind = table.spec().kind;
  entry.header.dtype = table.spec().dtype;
  entry.header.elements = values.size() / SizeOf(table.spec().dtype);
  entry.payload.push_back(values);
  return entry;
}

// The values of a dense block now.
absl::StatusOr<runtime::Buffer> Live(const Table& table, ShardStores* stores, std::uint64_t block,
                                     std::uint64_t elements) {
  PullView view;
  view.block = block;
  view.elements = elements;
  view.plain = true;
  LEEWAY_ASSIGN_OR_RETURN(PullResult result, stores->Of(table)->Pull(view));
  return std::move(result.payload[0]);
}

}  // namespace

std::vector<LogEntry> PublishedTables::Export(Tables* tables, ShardStores* stores) {
  std::vector<LogEntry> entries;
  for (const auto& [publication, frozen] : publications_) {
    for (const auto& [id, content] : frozen) {
      const Table& table = *tables->Find(id);
      if (content.blocks.empty()) entries.push_back(AsIsEntry(table, publication));
      for (const auto& [index, block] : content.blocks) {
        const std::uint64_t elements = block.values.size() / SizeOf(table.spec().dtype);
        const absl::StatusOr<runtime::Buffer> live = Live(table, stores, index, elements);
        const bool as_is = live.ok() && live->data() == block.values.data();
        entries.push_back(as_is ? AsIsEntry(table, publication)
                                : BlockEntry(table, publication, block.values));
        entries.back().header.block = index;
        entries.back().header.whole = as_is;
      }
    }
  }
  return entries;
}

absl::Status PublishedTables::Import(const LogEntry& entry, const Table& table,
                                     ShardStores* stores) {
  const proto::Replicate& header = entry.header;
  Frozen& frozen = publications_[header.version][table.id()];
  const bool sent = header.kind == proto::LogEntryKind::kPublishedBlock;
  if (!sent && !header.whole) return absl::OkStatus();
  const std::uint64_t block_elements =
      proto::BlockElements(table.spec().dtype, stores->block_bytes());
  const std::uint64_t elements =
      proto::ElementsInBlock(table.spec().NumElements(), block_elements, header.block);
  LEEWAY_ASSIGN_OR_RETURN(runtime::Buffer values,
                          Live(table, stores, header.block, sent ? header.elements : elements));
  if (sent) values = runtime::Buffer::CopyOf(entry.payload[0].data(), entry.payload[0].size());
  frozen.blocks[header.block] = {.values = std::move(values)};
  return absl::OkStatus();
}

PublishedTables::Block* PublishedTables::FindBlock(std::uint64_t publication, std::uint32_t table,
                                                   std::uint64_t block) {
  const auto tables = publications_.find(publication);
  if (tables == publications_.end()) return nullptr;
  const auto frozen = tables->second.find(table);
  if (frozen == tables->second.end()) return nullptr;
  const auto found = frozen->second.blocks.find(block);
  return found == frozen->second.blocks.end() ? nullptr : &found->second;
}

// ---- pulls ----

absl::StatusOr<PullResult> PublishedTables::Pull(const Table& table, ShardStores* stores,
                                                 const PullView& view, std::uint64_t publication) {
  const auto tables = publications_.find(publication);
  if (tables == publications_.end()) {
    return absl::NotFoundError(absl::StrCat("this version of table ", table.spec().name,
                                            " is not kept any more: fetch a newer one, or raise "
                                            "LEEWAY_VERSIONS_KEPT of the scheduler"));
  }
  Block* const now = FindBlock(publication, table.id(), view.block);
  if (now != nullptr) return PullBlock(table, view, publication, now);
  Frozen& frozen = tables->second[table.id()];
  if (frozen.blank == nullptr) frozen.blank = stores->NewStoreFor(table);
  LEEWAY_ASSIGN_OR_RETURN(PullResult result, frozen.blank->Pull(view));
  result.digest = compress::DigestOfBlock(table.id(), view.block, result.payload[0].bytes());
  return result;
}

absl::StatusOr<PullResult> PublishedTables::PullBlock(const Table& table, const PullView& view,
                                                      std::uint64_t publication, Block* now) {
  const runtime::Buffer& values = now->values;
  const std::size_t width = SizeOf(table.spec().dtype);
  PullResult result;
  result.elements = values.size() / width;
  if (view.elements != result.elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", view.elements, " elements from block ", view.block, " of table ",
                     table.spec().name, ", which has ", result.elements));
  }
  if (!now->digest.has_value()) {
    now->digest = compress::DigestOfBlock(table.id(), view.block, values.bytes());
  }
  result.digest = *now->digest;
  const Block* const before = FindBlock(view.have, table.id(), view.block);
  if (before == nullptr) {
    result.payload.push_back(values);
    return result;
  }
  if (before->values.data() == values.data()) {
    result.coded = true;
    result.payload.emplace_back();
    return result;
  }
  const KeptDifferences::Key key{
      .from = view.have, .to = publication, .table = table.id(), .block = view.block};
  const runtime::Buffer* difference = differences_.Find(key);
  if (difference == nullptr) {
    std::vector<std::byte> made;
    (void)compress::EncodeDifference(before->values.bytes(), values.bytes(), width, &made);
    differences_.Keep(key, runtime::Buffer::CopyOf(made.data(), made.size()));
    difference = differences_.Find(key);
  }
  result.coded = !difference->empty();
  result.payload.push_back(result.coded ? *difference : values);
  if (result.coded) {
    result.parts.push_back({.version = publication,
                            .bytes = difference->size(),
                            .codec = proto::kDifferenceCodec,
                            .whole = false});
  }
  return result;
}

}  // namespace leeway::ps
