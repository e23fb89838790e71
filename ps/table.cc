#include "ps/table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/table_codec.h"

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

// A table is installed only where its codecs are known (MakeUpdater).
compress::TableCodecs Table::CodecsOf(const TableSpec& spec) {
  absl::StatusOr<compress::TableCodecs> codecs = compress::TableCodecsOf(spec);
  if (codecs.ok()) return *std::move(codecs);
  return {.choices = {compress::TableCodec()}, .texts = {spec.codec}};
}

// The scheduler knows how many codecs the table has; nothing that it says may end a server.
void Table::Follow(const proto::CodecSwitch& change) {
  const std::size_t choices = codecs_.choices.size();
  if (change.choice < choices && change.before < choices) schedule_.Follow(change);
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
  if (request.codec != 0 && codecs_.Find(request.codec) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec_.name, " has codec ",
                                                   absl::StrJoin(codecs_.texts, "; "),
                                                   "; the push is encoded by another one"));
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

absl::Status Tables::Install(std::uint32_t id, const TableSpec& spec,
                             std::unique_ptr<Updater> updater) {
  if (const Table* other = Find(id); other != nullptr) {
    if (other->spec() == spec) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(
        "table ", id, " is installed as ", other->spec().ToString(), ", not as ", spec.ToString()));
  }
  tables_.try_emplace(id, id, spec, std::move(updater));
  return absl::OkStatus();
}

void Tables::Forget(std::uint32_t id) {
  const auto it = tables_.find(id);
  if (it != tables_.end() && !it->second.asked_for()) tables_.erase(it);
}

void Tables::Follow(const std::vector<proto::CodecSwitch>& changes) {
  for (const proto::CodecSwitch& change : changes) {
    if (Table* const table = Find(change.table); table != nullptr) table->Follow(change);
  }
}

Table* Tables::Find(std::uint32_t id) {
  auto it = tables_.find(id);
  return it == tables_.end() ? nullptr : &it->second;
}

}  // namespace leeway::ps
