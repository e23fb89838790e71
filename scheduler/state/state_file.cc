#include "scheduler/state/state_file.h"

#include <zlib.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace leeway::scheduler {
namespace {

using Json = nlohmann::json;

// The snapshot is a line "leeway-scheduler-state FORMAT CHECKSUM SIZE" and JSON; a record is a line
// feed, a line "+ CHECKSUM SIZE" and JSON. The JSON has no line feeds.
constexpr absl::string_view kMagic = "leeway-scheduler-state";
constexpr absl::string_view kRecord = "\n+ ";
constexpr std::size_t kLineMax = 256;

std::string ChecksumOf(absl::string_view text) {
  const auto crc = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(text.data()), text.size()));
  return absl::StrCat(absl::Hex(crc, absl::kZeroPad8));
}

std::string Framed(absl::string_view begin, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return absl::StrCat(begin, ChecksumOf(text), " ", text.size(), "\n", text);
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("it is damaged: ", what));
}

// A line of words at the beginning of `bytes`, which it is taken from.
std::vector<absl::string_view> TakeLine(absl::string_view* bytes) {
  const std::size_t end = bytes->substr(0, kLineMax).find('\n');
  if (end == bytes->npos) return {};
  const std::vector<absl::string_view> words = absl::StrSplit(bytes->substr(0, end), ' ');
  bytes->remove_prefix(end + 1);
  return words;
}

// The text that the line before it announces, taken from `bytes`.
absl::StatusOr<absl::string_view> TakeText(absl::string_view checksum, absl::string_view size,
                                           absl::string_view* bytes) {
  std::size_t text_bytes = 0;
  if (!absl::SimpleAtoi(size, &text_bytes) || size != absl::StrCat(text_bytes)) {
    return Damaged("its size cannot be read");
  }
  if (text_bytes > bytes->size()) {
    return Damaged(absl::StrCat("it has ", bytes->size(), " bytes of ", text_bytes));
  }
  const absl::string_view text = bytes->substr(0, text_bytes);
  if (checksum != ChecksumOf(text)) {
    return Damaged("its checksum is wrong");
  }
  bytes->remove_prefix(text_bytes);
  return text;
}

absl::StatusOr<Json> Parse(absl::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Damaged("it is no JSON object");
  return json;
}

absl::StatusOr<Json> TakeSnapshot(absl::string_view* bytes) {
  const std::vector<absl::string_view> words = TakeLine(bytes);
  if (words.size() != 4 || words[0] != kMagic) return Damaged("it does not begin as one");
  if (words[1] != absl::StrCat(kStateFormat)) {
    return absl::DataLossError(absl::StrCat("it has format ", words[1],
                                            ", and this scheduler reads format ", kStateFormat));
  }
  LEEWAY_ASSIGN_OR_RETURN(const absl::string_view text, TakeText(words[2], words[3], bytes));
  return Parse(text);
}

// nullopt: what `bytes` begins with is not an intact record.
std::optional<Json> TakeRecord(absl::string_view* bytes) {
  absl::string_view rest = *bytes;
  if (!absl::StartsWith(rest, kRecord)) return std::nullopt;
  rest.remove_prefix(1);
  const std::vector<absl::string_view> words = TakeLine(&rest);
  if (words.size() != 3) return std::nullopt;
  const absl::StatusOr<absl::string_view> text = TakeText(words[1], words[2], &rest);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<Json> json = Parse(*text);
  if (!json.ok()) return std::nullopt;
  *bytes = rest;
  return *std::move(json);
}

bool HasRecord(absl::string_view bytes) {
  for (std::size_t place = bytes.find(kRecord); place != bytes.npos;
       place = bytes.find(kRecord, place + 1)) {
    absl::string_view rest = bytes.substr(place);
    if (TakeRecord(&rest).has_value()) return true;
  }
  return false;
}

}  // namespace

std::string EncodeState(const State& state) {
  return Framed(absl::StrCat(kMagic, " ", kStateFormat, " "), ToJson(state));
}

absl::StatusOr<State> DecodeState(absl::string_view bytes) {
  LEEWAY_ASSIGN_OR_RETURN(Json json, TakeSnapshot(&bytes));
  while (const std::optional<Json> changes = TakeRecord(&bytes)) json.merge_patch(*changes);
  if (HasRecord(bytes)) {
    return Damaged("a record of its changes");
  }
  try {
    return StateFrom(json);
  } catch (const std::exception& error) {
    return Damaged(error.what());
  }
}

absl::Status StateFile::Write(State state) {
  absl::Status status;
  if (file_ == nullptr) {
    status = MakeAnew(state);
  } else {
    const std::string record = Framed(kRecord, ChangesBetween(written_, state));
    const bool fits =
        changes_bytes_ + record.size() <= std::max(snapshot_bytes_, kStateChangesBytes);
    status = fits ? AppendChanges(record) : MakeAnew(state);
  }
  if (status.ok()) written_ = std::move(state);
  return status;
}

absl::Status StateFile::MakeAnew(const State& state) {
  file_.reset();
  const std::string snapshot = EncodeState(state);
  LEEWAY_RETURN_IF_ERROR(runtime::WriteFileAtomically(files_, path_, snapshot));
  snapshot_bytes_ = snapshot.size();
  changes_bytes_ = 0;
  // Where it cannot be opened, the next write makes it anew as well.
  absl::StatusOr<std::unique_ptr<runtime::WritableFile>> file = files_->OpenForAppend(path_);
  if (file.ok()) file_ = *std::move(file);
  return absl::OkStatus();
}

absl::Status StateFile::AppendChanges(const std::string& record) {
  absl::Status status = file_->Append(record);
  if (status.ok()) status = file_->Sync();
  changes_bytes_ += record.size();
  if (!status.ok()) file_.reset();
  return status;
}

}  // namespace leeway::scheduler
