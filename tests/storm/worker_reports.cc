#include "tests/storm/worker_reports.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/storm/words.h"

namespace leeway::storm {
namespace {

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
std::string Text(const Dropped& dropped) {
  return absl::StrCat("dropped ", dropped.table, " ", dropped.step);
}
std::string Text(const Tally& tally) {
  return absl::StrCat("tally ", tally.table, " ", tally.worker, " ", tally.pushes, " ", tally.marks,
                      " ", tally.elements);
}
std::string Text(const Finished& finished) {
  return absl::StrCat("finished ", finished.resends, " ", finished.staleness_violations, " ",
                      finished.max_staleness);
}

std::optional<Entry> ParseStep(Words words) {
  Step step;
  while (words.size() > 4) {
    absl::Time time;
    if (!FromWord(words.back(), &time)) return std::nullopt;
    step.acknowledged.insert(step.acknowledged.begin(), time);
    words.pop_back();
  }
  if (!FromWords(words, &step.step, &step.end, &step.waited)) return std::nullopt;
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
  if (words[0] == "began" && FromWords(words, &began.rank, &began.clock)) return began;
  Accuracy accuracy;
  if (words[0] == "accuracy" && FromWords(words, &accuracy.part)) return accuracy;
  Dropped dropped;
  if (words[0] == "dropped" && FromWords(words, &dropped.table, &dropped.step)) return dropped;
  Tally tally;
  if (words[0] == "tally" &&
      FromWords(words, &tally.table, &tally.worker, &tally.pushes, &tally.marks, &tally.elements)) {
    return tally;
  }
  Finished finished;
  if (words[0] == "finished" && FromWords(words, &finished.resends, &finished.staleness_violations,
                                          &finished.max_staleness)) {
    return finished;
  }
  return std::nullopt;
}

}  // namespace leeway::storm
