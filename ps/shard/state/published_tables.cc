#include "ps/shard/state/published_tables.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compress/differences/difference.h"
#include "compress/differences/digest.h"
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

absl::Status PublishedTables::Freeze(const Table& table, ShardStores* stores,
                                     std::uint64_t publication) {
  Frozen frozen;
  ShardStore* const store = stores->Of(table);
  if (table.spec().kind == TableKind::kDense) {
    for (FrozenPiece& piece : store->Freeze().pieces) {
      frozen.blocks[piece.block] = {.values = std::move(piece.values)};
    }
  } else {
    frozen.store = stores->NewStoreFor(table);
    for (const FrozenPiece& piece : store->Freeze().pieces) {
      LEEWAY_RETURN_IF_ERROR(frozen.store->Load(piece));
    }
  }
  publications_[publication].insert_or_assign(table.id(), std::move(frozen));
  return absl::OkStatus();
}

void PublishedTables::Keep(const std::set<std::uint64_t>& kept) {
  if (kept.empty()) return;
  std::erase_if(publications_, [&](const auto& one) {
    const bool goes = one.first <= *kept.rbegin() && !kept.contains(one.first);
    if (goes) differences_.Forget(one.first);
    return goes;
  });
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
  if (frozen.store == nullptr) frozen.store = stores->NewStoreFor(table);
  LEEWAY_ASSIGN_OR_RETURN(PullResult result, frozen.store->Pull(view));
  if (table.spec().kind == TableKind::kDense) {
    result.digest = compress::DigestOfBlock(table.id(), view.block, result.payload[0].bytes());
  }
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
