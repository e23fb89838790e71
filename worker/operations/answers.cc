#include "worker/operations/answers.h"

#include "absl/strings/str_cat.h"
#include "worker/slicing/table_coding.h"

namespace leeway::worker {
namespace {

absl::Status Mismatch(absl::string_view what, std::uint64_t got, std::uint64_t wanted) {
  return absl::InternalError(
      absl::StrCat("the reply has ", got, " ", what, " where ", wanted, " were asked for"));
}

absl::Status CheckFrames(std::span<const runtime::Buffer> payload, std::size_t frames) {
  if (payload.size() != frames) return Mismatch("payload frames", payload.size(), frames);
  return absl::OkStatus();
}

absl::Status CheckRows(const Request& request, const proto::Reply& reply,
                       std::span<const runtime::Buffer> payload) {
  if (absl::Status frames = CheckFrames(payload, 2); !frames.ok()) return frames;
  const std::uint64_t keys = request.piece.keys;
  if (reply.keys != keys || payload[0].size() != keys * sizeof(std::uint32_t)) {
    return Mismatch("rows", reply.keys, keys);
  }
  std::uint64_t elements = 0;
  for (const std::uint32_t width : payload[0].as<std::uint32_t>()) elements += width;
  if (payload[1].size() != elements * SizeOf(reply.dtype)) {
    return Mismatch("value bytes", payload[1].size(), elements * SizeOf(reply.dtype));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAnswer(const Request& request, const proto::Reply& reply,
                         std::span<const runtime::Buffer> payload) {
  if (reply.op != request.op) {
    return absl::InternalError("the reply is to another kind of operation");
  }
  if (request.op == proto::Op::kCall) return CheckFrames(payload, 1);
  if (!proto::HasPull(request.op)) return absl::OkStatus();
  const TableSpec& spec = request.table->spec;
  if (reply.kind != spec.kind || reply.dtype != spec.dtype) {
    return absl::InternalError(absl::StrCat("the reply holds ", Name(reply.dtype), " where ",
                                            Name(spec.dtype),
                                            " was asked for, or is of another kind of table"));
  }
  if (spec.kind == TableKind::kRagged) return CheckRows(request, reply, payload);
  if (absl::Status frames = CheckFrames(payload, 1); !frames.ok()) return frames;
  const std::uint64_t wanted = request.piece.reply_elements;
  if (reply.coded) {
    const bool difference = request.piece.publication != 0 && request.piece.have != 0;
    if (difference && reply.elements == wanted) return absl::OkStatus();
    const TableCoding* const coding = request.table->coding.get();
    if (coding != nullptr && coding->codecs.AnyHas(&compress::TableCodec::codes_replies) &&
        reply.elements == wanted) {
      return absl::OkStatus();
    }
    return absl::InternalError(
        "the reply is encoded, which the table's replies are not, or of another size");
  }
  if (reply.elements != wanted || payload[0].size() != wanted * SizeOf(spec.dtype)) {
    return Mismatch("elements", reply.elements, wanted);
  }
  return absl::OkStatus();
}

bool RefusesPush(const absl::Status& answer) {
  return !answer.ok() && !absl::IsDeadlineExceeded(answer) && !absl::IsUnknown(answer);
}

bool LeavesPushOpen(const Request& request, const absl::Status& answer) {
  if (!proto::HasPush(request.op)) return false;
  return absl::IsDeadlineExceeded(answer) ||
         (absl::IsUnknown(answer) && proto::HasPull(request.op));
}

}  // namespace leeway::worker
