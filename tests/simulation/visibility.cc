#include "tests/simulation/visibility.h"

namespace leeway::simulation {

bool IsOwnWrite(const Sighting& it) {
  if (it.worker != it.read.reader || it.number >= it.read.own_pushes) return false;
  if (it.push.incarnation != it.read.incarnation || it.push.outcome == Outcome::kFailed) {
    return false;
  }
  const SimTable& table = *it.read.table;
  if (it.push.dropped > 0 || table.by_arrivals()) return false;
  if (!table.spec.consistency.closes_clocks()) return true;
  // A push that is late may be dropped, and its worker not know yet.
  if (table.collects() && it.push.outcome != Outcome::kAcknowledged) return false;
  return it.push.clock < it.read.effective;
}

bool IsAcknowledged(const Sighting& it) {
  if (it.push.outcome != Outcome::kAcknowledged || it.push.acknowledged >= it.read.submitted) {
    return false;
  }
  const SimTable& table = *it.read.table;
  if (it.push.dropped > 0 || table.by_arrivals()) return false;
  if (!table.spec.consistency.closes_clocks()) return true;
  if (it.push.clock >= it.read.effective) return false;
  if (table.collects()) return true;
  return !it.history.lives[it.worker].WasKilled(it.push.incarnation) ||
         it.push.clock < it.history.proven(table, it.worker, it.push.incarnation);
}

bool IsWithinBound(const Sighting& it) {
  const Consistency& consistency = it.read.table->spec.consistency;
  const bool of_all = !consistency.collects() && consistency.rule != Consistency::Rule::kSampled;
  if (!of_all) return false;
  const std::uint64_t bound = consistency.staleness;
  if (it.push.clock >= it.read.effective || it.read.effective - it.push.clock <= bound) {
    return false;
  }
  return !it.history.lives[it.worker].WasKilled(it.push.incarnation) &&
         it.push.outcome != Outcome::kFailed;
}

}  // namespace leeway::simulation
