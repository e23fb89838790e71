#include <cmath>

#include "proto/encoding/decode_parts.h"
#include "proto/encoding/decode_payload.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

// A file name within a checkpoint's directory, which must not lead out of it.
absl::Status ReadFileName(const flatbuffers::String* name, Input& in, std::string* to) {
  LEEWAY_RETURN_IF_ERROR(ReadName("file's name", name, in, to));
  if (to->find('/') == std::string::npos && *to != "." && *to != "..") return absl::OkStatus();
  return Wrong("file's name is ", Quoted(*to), ", may be without directories");
}

}  // namespace

absl::Status Read(const wire::Admin& from, Input& in, Admin* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadName("command", from.command(), in, &to->command));
  const std::size_t size = SizeOrZero(from.arguments());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of arguments", size, 0, kArgumentsMax));
  to->arguments.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto* text = from.arguments()->Get(static_cast<flatbuffers::uoffset_t>(i));
    LEEWAY_RETURN_IF_ERROR(ReadText("argument", text, 0, kArgumentBytesMax, in, &to->arguments[i]));
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::AdminReply& from, Input& in, AdminReply* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  return TakeBytes(in);
}

absl::Status Read(const wire::CodecReport& from, Input&, CodecReport* to) {
  to->table = from.table();
  LEEWAY_RETURN_IF_ERROR(CheckRange("table", to->table, 1, kAny));
  const std::size_t size = SizeOrZero(from.costs());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of costs", size, 1, kTableCodecsMax + 1));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("costs", from.costs(), sizeof(double)));
  to->lossy = from.lossy();
  LEEWAY_RETURN_IF_ERROR(CheckRange("lossy", to->lossy, 0, (std::uint64_t{1} << size) - 1));
  for (std::size_t i = 0; i < size; ++i) {
    const double cost = from.costs()->Get(static_cast<std::uint32_t>(i));
    if (!std::isfinite(cost) || cost <= 0)
      return Wrong("cost ", i, " is ", cost, ", may be above 0");
    to->costs.push_back(cost);
  }
  to->clock = from.clock();
  to->link_bytes_per_s = from.link_bytes_per_s();
  if (!std::isfinite(to->link_bytes_per_s) || to->link_bytes_per_s <= 0) {
    return Wrong("link_bytes_per_s is ", to->link_bytes_per_s, ", may be above 0");
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::CheckpointPrepare& from, Input&, CheckpointPrepare* to) {
  to->checkpoint = from.checkpoint();
  return absl::OkStatus();
}

absl::Status Read(const wire::CheckpointPrepared& from, Input&, CheckpointPrepared* to) {
  to->checkpoint = from.checkpoint();
  to->fastest_clock = from.fastest_clock();
  return absl::OkStatus();
}

absl::Status Read(const wire::CheckpointCut& from, Input& in, CheckpointCut* to) {
  to->checkpoint = from.checkpoint();
  to->clock = from.clock();
  to->bounded = from.bounded();
  LEEWAY_RETURN_IF_ERROR(
      ReadText("directory", from.directory(), 1, kPathBytesMax, in, &to->directory));
  return ReadText("base", from.base(), 0, kPathBytesMax, in, &to->base);
}

absl::Status Read(const wire::CheckpointWritten& from, Input& in, CheckpointWritten* to) {
  to->checkpoint = from.checkpoint();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  const std::size_t size = SizeOrZero(from.files());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of files", size, 0, kCheckpointFilesMax));
  to->files.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::CheckpointFile& file = *from.files()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(ReadFileName(file.name(), in, &to->files[i].name));
    to->files[i].bytes = file.bytes();
    to->files[i].checksum = file.checksum();
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::RestoreShards& from, Input& in, RestoreShards* to) {
  to->request = from.request();
  to->checksum = from.checksum();
  return ReadText("directory", from.directory(), 1, kPathBytesMax, in, &to->directory);
}

absl::Status Read(const wire::RestoreShardsReply& from, Input& in, RestoreShardsReply* to) {
  to->request = from.request();
  return ReadStatus(from.code(), from.reason(), in, &to->result);
}

absl::Status Read(const wire::SchedulerMoved& from, Input& in, SchedulerMoved* to) {
  LEEWAY_RETURN_IF_ERROR(
      ReadText("address", from.address(), 1, kAddressBytesMax, in, &to->address));
  to->cluster = from.cluster();
  return absl::OkStatus();
}

}  // namespace leeway::proto::decode
