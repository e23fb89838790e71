#include "ps/table.h"

#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

absl::string_view NameOf(TableKind kind) {
  switch (kind) {
    case TableKind::kDense:
      return "dense";
    case TableKind::kSparse:
      return "sparse";
    case TableKind::kRagged:
      return "ragged";
  }
  return "unknown";
}

}  // namespace

ShardStore* Table::Shard(StorePlace place) {
  std::unique_ptr<ShardStore>& store = shards_[place.shard];
  if (store == nullptr) {
    place.table = id_;
    store = NewShardStore(spec_, place, updater_.get());
  }
  return store.get();
}

absl::Status Table::Fits(const proto::Request& request, std::uint64_t message_bytes_max) const {
  if (request.kind != spec_.kind) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec_.name, " is ", NameOf(spec_.kind),
                                                   "; the request says ", NameOf(request.kind)));
  }
  if (request.dtype != spec_.dtype) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec_.name, " holds ",
                                                   Name(spec_.dtype), "; the request says ",
                                                   Name(request.dtype)));
  }
  if (HasPull(request.op) && spec_.kind == TableKind::kSparse) {
    // Keys and widths are below 2^26 and 2^24 (proto/limits.h), so this does not overflow.
    const std::uint64_t bytes = request.keys * spec_.row_width * SizeOf(spec_.dtype);
    if (bytes > message_bytes_max) {
      return absl::InvalidArgumentError(
          absl::StrCat("a pull of ", request.keys, " keys of table ", spec_.name, " is ", bytes,
                       " bytes, more than one message may have (", message_bytes_max,
                       "): pull fewer keys at once or raise LEEWAY_MESSAGE_BYTES_MAX"));
    }
  }
  return absl::OkStatus();
}

StoreStats Table::stats() const {
  StoreStats total;
  for (const auto& [shard, store] : shards_) {
    const StoreStats one = store->stats();
    total.rows += one.rows;
    total.blocks += one.blocks;
    total.value_bytes += one.value_bytes;
    total.copies_on_write += one.copies_on_write;
  }
  return total;
}

}  // namespace leeway::ps
