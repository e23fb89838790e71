#include "tests/storm/diary.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway::storm {
namespace {

using Words = std::vector<std::string>;

std::string Text(const Began& began) {
  return absl::StrCat("began ", began.rank, " ", began.clock);
}
std::string Text(const Step& step) {
  std::string text = absl::StrCat("step ", step.step, " ", absl::ToUnixMicros(step.end), " ",
                                  absl::ToInt64Microseconds(step.waited));
  for (const absl::Time time : step.acknowledged) {
    absl::StrAppend(&text, " ", absl::ToUnixMicros(time));
  }
  return text;
}
std::string Text(const Accuracy& accuracy) { return absl::StrCat("accuracy ", accuracy.part); }
std::string Text(const Tally& tally) {
  return absl::StrCat("tally ", tally.table, " ", tally.worker, " ", tally.pushes, " ", tally.marks,
                      " ", tally.elements);
}
std::string Text(const Finished& finished) {
  return absl::StrCat("finished ", finished.resends, " ", finished.staleness_violations, " ",
                      finished.max_staleness);
}

template <class T>
bool To(const std::string& word, T* value) {
  return absl::SimpleAtoi(word, value);
}
bool To(const std::string& word, double* value) { return absl::SimpleAtod(word, value); }
bool To(const std::string& word, std::string* value) {
  *value = word;
  return true;
}
bool To(const std::string& word, absl::Time* value) {
  std::int64_t microseconds = 0;
  if (!To(word, &microseconds)) return false;
  *value = absl::FromUnixMicros(microseconds);
  return true;
}
bool To(const std::string& word, absl::Duration* value) {
  std::int64_t microseconds = 0;
  if (!To(word, &microseconds)) return false;
  *value = absl::Microseconds(microseconds);
  return true;
}

// All words after the first, one for each of these.
template <class... Values>
bool Read(const Words& words, Values*... values) {
  if (words.size() != sizeof...(values) + 1) return false;
  std::size_t at = 0;
  return (To(words[++at], values) && ...);
}

std::optional<Entry> ParseStep(Words words) {
  Step step;
  while (words.size() > 4) {
    absl::Time time;
    if (!To(words.back(), &time)) return std::nullopt;
    step.acknowledged.insert(step.acknowledged.begin(), time);
    words.pop_back();
  }
  if (!Read(words, &step.step, &step.end, &step.waited)) return std::nullopt;
  return step;
}

}  // namespace

std::string ToLine(const Entry& entry) {
  return std::visit([](const auto& what) { return Text(what); }, entry);
}

std::optional<Entry> Parse(absl::string_view line) {
  const Words words = absl::StrSplit(line, ' ');
  if (words[0] == "step") return ParseStep(words);
  Began began;
  if (words[0] == "began" && Read(words, &began.rank, &began.clock)) return began;
  Accuracy accuracy;
  if (words[0] == "accuracy" && Read(words, &accuracy.part)) return accuracy;
  Tally tally;
  if (words[0] == "tally" &&
      Read(words, &tally.table, &tally.worker, &tally.pushes, &tally.marks, &tally.elements)) {
    return tally;
  }
  Finished finished;
  if (words[0] == "finished" &&
      Read(words, &finished.resends, &finished.staleness_violations, &finished.max_staleness)) {
    return finished;
  }
  return std::nullopt;
}

}  // namespace leeway::storm
