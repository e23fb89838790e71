#include "ps/shard/state/published_tables.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

absl::Status PublishedTables::Freeze(const Table& table, ShardStores* stores,
                                     std::uint64_t publication) {
  Frozen frozen;
  ShardStore* const store = stores->Of(table);
  if (table.spec().kind == TableKind::kDense) {
    for (FrozenPiece& piece : store->Freeze().pieces) {
      frozen.blocks[piece.block] = std::move(piece.values);
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
    return one.first <= *kept.rbegin() && !kept.contains(one.first);
  });
}

const runtime::Buffer* PublishedTables::FindBlock(std::uint64_t publication, std::uint32_t table,
                                                  std::uint64_t block) const {
  const auto tables = publications_.find(publication);
  if (tables == publications_.end()) return nullptr;
  const auto frozen = tables->second.find(table);
  if (frozen == tables->second.end()) return nullptr;
  const auto found = frozen->second.blocks.find(block);
  return found == frozen->second.blocks.end() ? nullptr : &found->second;
}

absl::StatusOr<PullResult> PublishedTables::Pull(const Table& table, ShardStores* stores,
                                                 const PullView& view, std::uint64_t publication) {
  const auto tables = publications_.find(publication);
  if (tables == publications_.end()) {
    return absl::NotFoundError(absl::StrCat("this version of table ", table.spec().name,
                                            " is not kept any more: fetch a newer one, or raise "
                                            "LEEWAY_VERSIONS_KEPT of the scheduler"));
  }
  const runtime::Buffer* const now = FindBlock(publication, table.id(), view.block);
  if (now == nullptr) {
    Frozen& frozen = tables->second[table.id()];
    if (frozen.store == nullptr) frozen.store = stores->NewStoreFor(table);
    return frozen.store->Pull(view);
  }
  const std::uint64_t elements = now->size() / SizeOf(table.spec().dtype);
  if (view.elements != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", view.elements, " elements from block ", view.block, " of table ",
                     table.spec().name, ", which has ", elements));
  }
  PullResult result;
  result.elements = elements;
  const runtime::Buffer* const before = FindBlock(view.have, table.id(), view.block);
  if (before != nullptr && before->data() == now->data()) {
    result.coded = true;
    result.payload.emplace_back();
  } else {
    result.payload.push_back(*now);
  }
  return result;
}

}  // namespace leeway::ps
