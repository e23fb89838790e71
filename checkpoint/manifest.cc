#include "checkpoint/manifest.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "checkpoint/checksum.h"
#include "checkpoint/manifest_tables.h"
#include "checkpoint/strict_json.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

// {"leeway_checkpoint":1,"checksum":"xxh3:…","manifest":{…}} and a line's end. The checksum is of
// the text of the inner object, which is kept as it is: nothing has to write JSON alike twice.
constexpr absl::string_view kStart = "{\"leeway_checkpoint\":";
constexpr absl::string_view kChecksum = ",\"checksum\":\"";
constexpr absl::string_view kBody = "\",\"manifest\":";
constexpr absl::string_view kEnd = "}\n";
constexpr std::size_t kChecksumBytes = 21;
constexpr int kManifestDepthMax = 8;

absl::Status Wrong(absl::string_view problem) { return absl::DataLossError(problem); }

Json ToJson(const FileEntry& file) {
  return {{"name", file.name},
          {"shard", file.shard},
          {"bytes", file.bytes},
          {"checksum", ChecksumText(file.checksum)}};
}

std::uint64_t ChecksumFrom(Members* members) {
  const std::optional<std::uint64_t> checksum = ParseChecksum(members->Text("checksum"));
  if (!checksum.has_value()) members->Fail("checksum", "is none");
  return checksum.value_or(0);
}

absl::StatusOr<FileEntry> FileFrom(const Json& json) {
  Members members(json, "a file");
  FileEntry file;
  file.name = members.Text("name");
  file.shard = members.Number32("shard");
  file.bytes = members.Number("bytes");
  file.checksum = ChecksumFrom(&members);
  LEEWAY_RETURN_IF_ERROR(members.End());
  return file;
}

absl::StatusOr<std::optional<Base>> BaseFrom(const Json& json) {
  if (json.is_null()) return std::optional<Base>();
  Members members(json, "the base");
  Base base;
  base.name = members.Text("name");
  base.checksum = ChecksumFrom(&members);
  LEEWAY_RETURN_IF_ERROR(members.End());
  return std::optional<Base>(std::move(base));
}

absl::StatusOr<Manifest> BodyFrom(absl::string_view body) {
  LEEWAY_ASSIGN_OR_RETURN(const Json json, ParseJson(body, kManifestDepthMax));
  Members members(json, "the manifest");
  Manifest manifest;
  manifest.name = members.Text("name");
  manifest.time = members.Text("time");
  manifest.cluster = members.Number("cluster");
  manifest.clock = members.Number("clock");
  manifest.num_shards = members.Number32("num_shards");
  manifest.block_bytes = members.Number("block_bytes");
  const Json& base = members.Of("base");
  const Json& tables = members.Of("tables");
  const Json& files = members.Of("files");
  LEEWAY_RETURN_IF_ERROR(members.End());
  LEEWAY_ASSIGN_OR_RETURN(manifest.base, BaseFrom(base));
  if (!tables.is_array() || !files.is_array()) return Wrong("it has no tables or files");
  for (const Json& table : tables) {
    LEEWAY_ASSIGN_OR_RETURN(TableEntry entry, TableFrom(table));
    manifest.tables.push_back(std::move(entry));
  }
  for (const Json& file : files) {
    LEEWAY_ASSIGN_OR_RETURN(FileEntry entry, FileFrom(file));
    manifest.files.push_back(std::move(entry));
  }
  LEEWAY_RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

}  // namespace

std::string EncodeManifest(Manifest* manifest) {
  Json tables = Json::array(), files = Json::array();
  for (const TableEntry& table : manifest->tables) tables.push_back(ToJson(table));
  for (const FileEntry& file : manifest->files) files.push_back(ToJson(file));
  Json base;
  if (manifest->base.has_value()) {
    base = {{"name", manifest->base->name}, {"checksum", ChecksumText(manifest->base->checksum)}};
  }
  const Json body = {{"name", manifest->name},
                     {"time", manifest->time},
                     {"cluster", manifest->cluster},
                     {"clock", manifest->clock},
                     {"num_shards", manifest->num_shards},
                     {"block_bytes", manifest->block_bytes},
                     {"base", std::move(base)},
                     {"tables", std::move(tables)},
                     {"files", std::move(files)}};
  const std::string text = body.dump();
  manifest->checksum = ChecksumOf(text);
  return absl::StrCat(kStart, kFormatVersion, kChecksum, ChecksumText(manifest->checksum), kBody,
                      text, kEnd);
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kStart)) return Wrong("it is no manifest of a checkpoint");
  if (!absl::ConsumePrefix(&text, absl::StrCat(kFormatVersion, kChecksum))) {
    return absl::UnimplementedError(absl::StrCat(
        "it is of another version of the format; this program knows version ", kFormatVersion));
  }
  const std::optional<std::uint64_t> checksum = ParseChecksum(text.substr(0, kChecksumBytes));
  if (!checksum.has_value()) return Wrong("it has no checksum");
  text.remove_prefix(kChecksumBytes);
  if (!absl::ConsumePrefix(&text, kBody) || !absl::ConsumeSuffix(&text, kEnd)) {
    return Wrong("it has been cut off");
  }
  if (ChecksumOf(text) != *checksum) return Wrong("it does not agree with its checksum");
  absl::StatusOr<Manifest> manifest = BodyFrom(text);
  if (!manifest.ok()) return Wrong(manifest.status().message());
  manifest->checksum = *checksum;
  return manifest;
}

}  // namespace leeway::checkpoint
