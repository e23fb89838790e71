#include "tests/storm/history_record.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/storm/words.h"

namespace leeway::storm {
namespace {

std::string Line(const PushMade& push) {
  return absl::StrCat("push ", push.table, " ", push.number, " ", push.clock, " ", push.places, " ",
                      absl::ToUnixMicros(push.at));
}
std::string Line(const PushTold& push) {
  return absl::StrCat("told ", push.table, " ", push.number, " ", push.code, " ",
                      absl::ToUnixMicros(push.at));
}
std::string Line(const ReadAsked& read) {
  return absl::StrCat("ask ", read.id, " ", read.table, " ", read.clock, " ", read.effective, " ",
                      read.own_pushes, " ", read.places, " ", absl::ToUnixMicros(read.at));
}
std::string Line(const ReadSeen& read) {
  std::string line =
      absl::StrCat("seen ", read.id, " ", read.reader_clock, " ", absl::ToUnixMicros(read.at));
  for (const ReadSeen::Change& change : read.changes) {
    absl::StrAppend(&line, " ", change.place, ":", change.element, "=",
                    absl::Hex(static_cast<std::uint64_t>(change.value)));
  }
  return line;
}
std::string Line(const ReadFailed& read) {
  return absl::StrCat("failed ", read.id, " ", read.code, " ", absl::ToUnixMicros(read.at));
}

// "2:17=1ff"
bool ParseChange(absl::string_view word, ReadSeen::Change* change) {
  const std::vector<absl::string_view> numbers = absl::StrSplit(word, absl::ByAnyChar(":="));
  std::uint64_t value = 0;
  if (numbers.size() != 3 || !absl::SimpleAtoi(numbers[0], &change->place) ||
      !absl::SimpleAtoi(numbers[1], &change->element) || !absl::SimpleHexAtoi(numbers[2], &value)) {
    return false;
  }
  change->value = static_cast<std::int64_t>(value);
  return true;
}

std::optional<HistoryRecord> ParseSeen(Words words) {
  constexpr std::size_t kFirstChange = 4;
  ReadSeen read;
  for (std::size_t i = kFirstChange; i < words.size(); ++i) {
    if (!ParseChange(words[i], &read.changes.emplace_back())) return std::nullopt;
  }
  words.resize(std::min(words.size(), kFirstChange));
  if (!FromWords(words, &read.id, &read.reader_clock, &read.at)) return std::nullopt;
  return read;
}

}  // namespace

absl::Time TimeOf(const HistoryRecord& record) {
  return std::visit([](const auto& what) { return what.at; }, record);
}

bool IsBeginning(const HistoryRecord& record) {
  return std::holds_alternative<PushMade>(record) || std::holds_alternative<ReadAsked>(record);
}

std::string ToHistoryLine(const HistoryRecord& record) {
  return std::visit([](const auto& what) { return Line(what); }, record);
}

std::optional<HistoryRecord> ParseHistoryLine(absl::string_view line) {
  const Words words = absl::StrSplit(line, ' ');
  if (words[0] == "seen") return ParseSeen(words);
  PushMade push;
  if (words[0] == "push" &&
      FromWords(words, &push.table, &push.number, &push.clock, &push.places, &push.at)) {
    return push;
  }
  PushTold told;
  if (words[0] == "told" && FromWords(words, &told.table, &told.number, &told.code, &told.at)) {
    return told;
  }
  ReadAsked read;
  if (words[0] == "ask" && FromWords(words, &read.id, &read.table, &read.clock, &read.effective,
                                     &read.own_pushes, &read.places, &read.at)) {
    return read;
  }
  ReadFailed failed;
  if (words[0] == "failed" && FromWords(words, &failed.id, &failed.code, &failed.at)) return failed;
  return std::nullopt;
}

}  // namespace leeway::storm
