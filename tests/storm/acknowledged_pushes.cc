#include "tests/storm/acknowledged_pushes.h"

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "absl/strings/str_cat.h"

namespace leeway::storm {

std::size_t AcknowledgedPushes::NewLife(std::uint32_t rank) {
  lives_.emplace_back().rank = rank;
  return lives_.size() - 1;
}

void AcknowledgedPushes::OnLine(std::size_t number, absl::string_view line) {
  const std::optional<Entry> entry = Parse(line);
  if (!entry.has_value()) return;
  Life& life = lives_[number];
  if (const auto* began = std::get_if<Began>(&*entry)) {
    life.began = began->clock;
  } else if (const auto* step = std::get_if<Step>(&*entry)) {
    life.last_step = step->step;
    life.acknowledged.insert(life.acknowledged.end(), step->acknowledged.begin(),
                             step->acknowledged.end());
    life.steps.push_back(*step);
  } else if (const auto* accuracy = std::get_if<Accuracy>(&*entry)) {
    accuracy_ = accuracy->part;
  } else if (const auto* dropped = std::get_if<Dropped>(&*entry)) {
    life.dropped[dropped->table].insert(dropped->step);
  } else if (const auto* tally = std::get_if<Tally>(&*entry)) {
    tallies_.push_back(*tally);
  } else if (const auto* finished = std::get_if<Finished>(&*entry)) {
    life.finished = *finished;
  }
}

std::uint64_t AcknowledgedPushes::StepsDone() const {
  std::map<std::uint32_t, std::uint64_t> done;
  for (const Life& life : lives_) {
    done[life.rank] = std::max(done[life.rank], life.last_step ? *life.last_step + 1 : life.began);
  }
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& [rank, steps] : done) least = std::min(least, steps);
  return done.empty() ? 0 : least;
}

absl::Duration AcknowledgedPushes::LongestWait(absl::Time from, absl::Time to) const {
  absl::Duration longest;
  for (const Life& life : lives_) {
    for (const Step& step : life.steps) {
      if (step.end >= from && step.end - step.waited <= to)
        longest = std::max(longest, step.waited);
    }
  }
  return longest;
}

namespace {

absl::Time FirstOf(const AcknowledgedPushes::Life& life, absl::Time after) {
  absl::Time first = absl::InfiniteFuture();
  for (const absl::Time time : life.acknowledged) {
    if (time > after) first = std::min(first, time);
  }
  return first;
}

}  // namespace

absl::Time AcknowledgedPushes::FirstAcknowledgement(absl::Time after) const {
  absl::Time first = absl::InfiniteFuture();
  for (const Life& life : lives_) first = std::min(first, FirstOf(life, after));
  return first;
}

absl::Time AcknowledgedPushes::LastFirstAcknowledgement(absl::Time after) const {
  absl::Time last = absl::InfinitePast();
  for (const Life& life : lives_) {
    if (!life.was_killed) last = std::max(last, FirstOf(life, after));
  }
  return last;
}

Finished AcknowledgedPushes::Totals() const {
  Finished totals;
  for (const Life& life : lives_) {
    if (!life.finished.has_value()) continue;
    totals.resends += life.finished->resends;
    totals.staleness_violations += life.finished->staleness_violations;
    totals.max_staleness = std::max(totals.max_staleness, life.finished->max_staleness);
  }
  return totals;
}

// It is unknown of a killed worker's last two steps whether their pushes had left it.
void AcknowledgedPushes::Judge(const Tally& tally, Verdict* verdict) const {
  std::int64_t pushes = 0, marks = 0;
  std::vector<std::int64_t> in_doubt;
  for (const Life& life : lives_) {
    if (life.rank != tally.worker) continue;
    const std::uint64_t said = life.last_step ? *life.last_step + 1 : life.began;
    const std::uint64_t sure =
        life.was_killed ? std::max(life.began, said - std::min<std::uint64_t>(said, 1)) : said;
    const auto dropped = life.dropped.find(tally.table);
    for (std::uint64_t step = life.began; step < sure; ++step) {
      if (dropped != life.dropped.end() && dropped->second.contains(step)) continue;
      ++pushes;
      marks += MarkOf(life.rank, step);
    }
    if (!life.was_killed) continue;
    for (std::uint64_t step = sure; step <= said; ++step) {
      in_doubt.push_back(MarkOf(life.rank, step));
    }
  }
  // Any of those in doubt may have been applied.
  for (std::size_t some = 0; some < std::size_t{1} << in_doubt.size(); ++some) {
    std::int64_t more = 0, more_marks = 0;
    for (std::size_t i = 0; i < in_doubt.size(); ++i) {
      if ((some >> i & 1) == 0) continue;
      ++more;
      more_marks += in_doubt[i];
    }
    if (tally.pushes == pushes + more && tally.marks == marks + more_marks) return;
  }
  const std::int64_t short_of = pushes - tally.pushes;
  const auto doubt = static_cast<std::int64_t>(in_doubt.size());
  // The right number of pushes with wrong marks means that one is missing and another counts twice.
  verdict->lost = std::max<std::uint64_t>(verdict->lost, std::max<std::int64_t>(short_of, 0));
  verdict->applied_twice =
      std::max<std::uint64_t>(verdict->applied_twice, std::max<std::int64_t>(-short_of - doubt, 0));
  if (short_of <= 0 && -short_of <= doubt) {
    verdict->lost = std::max<std::uint64_t>(verdict->lost, 1);
    verdict->applied_twice = std::max<std::uint64_t>(verdict->applied_twice, 1);
  }
  if (verdict->first_mistake.empty()) {
    verdict->first_mistake = absl::StrCat(
        tally.elements, " elements of ", tally.table, " hold ", tally.pushes, " pushes of worker ",
        tally.worker, " with marks ", tally.marks, " instead of ", pushes, " with ", marks);
  }
}

Verdict AcknowledgedPushes::Judge() const {
  Verdict verdict;
  for (const Life& life : lives_) {
    verdict.pushes += life.steps.size();
    for (const auto& [table, steps] : life.dropped) verdict.dropped += steps.size();
  }
  verdict.tallies = tallies_.size();
  for (const Tally& tally : tallies_) Judge(tally, &verdict);
  return verdict;
}

}  // namespace leeway::storm
