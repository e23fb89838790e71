#include "proto/encoding/read_fields.h"

#include <utility>

namespace leeway::proto {
namespace {

flatbuffers::Verifier::Options Limits() {
  flatbuffers::Verifier::Options options;
  options.max_depth = options.max_tables = Input::kTablesMax;  // messages' types bound the depth
  return options;
}

constexpr int kLastStatusCode = static_cast<int>(absl::StatusCode::kUnauthenticated);

}  // namespace

Input::Input(const std::uint8_t* header, std::size_t size)
    : verifier(header, size, Limits()), text_bytes_left(size) {}

bool Input::Broken() {
  broken_ = true;
  return false;
}

bool Input::Refuse(absl::string_view lead, absl::string_view field, absl::string_view rest) {
  lead_ = std::string(lead);
  field_ = std::string(field);
  rest_ = std::string(rest);
  return false;
}

bool Input::RefuseRange(absl::string_view lead, const char* field, std::uint64_t value,
                        const Range& may_be) {
  return Refuse(lead, field, OutOfRange(value, may_be.least(), may_be.most()));
}

bool Input::Within(const char* name, std::size_t index) {
  const std::string outer = index == kNoIndex ? name : absl::StrCat(name, "[", index, "]");
  field_ = field_.empty() ? outer : absl::StrCat(outer, ".", field_);
  return false;
}

absl::Status Input::Error(absl::string_view type) const {
  if (broken_) {
    return absl::InvalidArgumentError(
        "malformed header: its structure is broken or over its limits");
  }
  return absl::InvalidArgumentError(absl::StrCat("malformed ", type, ": ", lead_, field_, rest_));
}

std::string OutOfRange(std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  if (max == kAny) return absl::StrCat(" is ", value, ", may be at least ", min);
  if (max == min) return absl::StrCat(" is ", value, ", may be ", min);
  return absl::StrCat(" is ", value, ", may be ", min, " to ", max);
}

bool CheckFraction(Input& in, const char* name, double value, const Fraction& may_be) {
  const auto wrong = [&](const char* what) {
    return in.Refuse("", name, absl::StrCat(" is ", value, ", may be ", what));
  };
  if (!may_be.applies) return value == may_be.unsaid || wrong(absl::StrCat(may_be.unsaid).c_str());
  if (may_be.kind == Fraction::Kind::kAnything) return true;
  const bool finite = std::isfinite(value);
  if (may_be.kind == Fraction::Kind::kFinite) return finite || wrong("finite");
  if (may_be.kind == Fraction::Kind::kPositive) return (finite && value > 0) || wrong("above 0");
  return (finite && value >= 0) || wrong("0 or more");
}

bool TableReader::operator()(absl::Status& to, const Result& check) {
  std::int32_t code = 0;
  if (!Take(&code)) return false;
  if (code < 0 || code > kLastStatusCode) {
    return in_.Refuse("", "code", absl::StrCat(" is ", code, ", may be 0 to ", kLastStatusCode));
  }
  if (check.error && code == 0) {
    return in_.Refuse("", "code", " is 0 (OK), may be that of an error");
  }
  std::string reason;
  if (!(*this)("reason", reason, Reason{check.reason_max})) return false;
  to = absl::Status(static_cast<absl::StatusCode>(code), reason);
  return true;
}

bool TableReader::operator()(const char* name, Consistency& to) {
  std::string text;
  if (!(*this)(name, text, {1, kConsistencyBytesMax})) return false;
  absl::StatusOr<Consistency> read = Consistency::Parse(text);
  if (!read.ok()) return in_.Refuse("", name, absl::StrCat(": ", read.status().message()));
  to = *std::move(read);
  return true;
}

bool TableReader::operator()(const char* name, std::map<std::string, double>& to,
                             const Fraction& each) {
  RawList list;
  if (!TakePlaces(name, {0, kParametersMax}, &list)) return false;
  for (std::size_t i = 0; i < list.size; ++i) {
    Parameter parameter;
    if (!ReadTable(in_, list.Target(i), &parameter) ||
        !CheckFraction(in_, "value", parameter.value, each)) {
      return in_.Within(name, i);
    }
    if (!to.emplace(parameter.name, parameter.value).second) {
      return in_.Refuse("", name, absl::StrCat(" have ", Quoted(parameter.name), " twice"));
    }
  }
  return true;
}

bool TableReader::operator()(const char* name, std::vector<std::string>& to, const Count& check,
                             const Utf8& each) {
  RawList list;
  if (!TakePlaces(name, check, &list)) return false;
  to.resize(list.size);
  for (std::size_t i = 0; i < list.size; ++i) {
    if (!ReadText("", list.Target(i), each, Lines::kOne, &to[i])) return in_.Within(name, i);
  }
  return true;
}

bool TableReader::TakePlace(const std::uint8_t** to) {
  const flatbuffers::voffset_t at = Next();
  if (at == 0) return true;
  if (in_.verifier.VerifyOffset(table_, at) == 0) return in_.Broken();
  *to = table_ + at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(table_ + at);
  return true;
}

bool TableReader::TakeText(const char* name, const Utf8& check, Lines lines, std::string* to) {
  const std::uint8_t* place = nullptr;
  return TakePlace(&place) && ReadText(name, place, check, lines, to);
}

// A text that is left out is read as empty.
bool TableReader::ReadText(const char* name, const std::uint8_t* place, const Utf8& check,
                           Lines lines, std::string* to) {
  const auto* const text = reinterpret_cast<const flatbuffers::String*>(place);
  if (!in_.verifier.VerifyString(text)) return in_.Broken();
  const absl::string_view view =
      text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
  const absl::Status status = CheckText("", view, check.min, check.max, lines);
  if (!status.ok()) return in_.Refuse("", name, status.message());
  // Beside its bytes a text has its length, its end and the offset that leads to it: 9 bytes.
  const std::size_t used = text == nullptr ? 0 : view.size() + 9;
  if (used > in_.text_bytes_left) {
    return in_.Refuse("", name,
                      " is one text too many: all texts together exceed the header's length");
  }
  in_.text_bytes_left -= used;
  to->assign(view.data(), view.size());
  return true;
}

// The verifier checks the alignment of a list's length, not of its entries.
bool TableReader::TakeList(const char* name, std::size_t entry_bytes, std::size_t alignment,
                           const Count& check, RawList* to) {
  const std::uint8_t* place = nullptr;
  if (!TakePlace(&place)) return false;
  if (place != nullptr) {
    if (!in_.verifier.VerifyVectorOrString(place, entry_bytes)) return in_.Broken();
    to->size = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(place);
    to->data = place + sizeof(flatbuffers::uoffset_t);
  }
  if (!CheckNumber(in_, name, to->size, check.range(), "number of ")) return false;
  if (to->size == 0 || reinterpret_cast<std::uintptr_t>(to->data) % alignment == 0) return true;
  return in_.Refuse("", name, absl::StrCat(" are not aligned to ", alignment, " bytes"));
}

}  // namespace leeway::proto
