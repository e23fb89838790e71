#include "tests/simulation/visibility.h"

namespace leeway::simulation {

bool IsOwnWrite(const Sighting& it) {
  if (it.worker != it.read.reader || it.number >= it.read.own_pushes) return false;
  if (it.push.incarnation != it.read.incarnation || it.push.outcome == Outcome::kFailed) {
    return false;
  }
  return !it.read.table->bsp() || it.push.clock < it.read.effective;
}

bool IsAcknowledged(const Sighting& it) {
  if (it.push.outcome != Outcome::kAcknowledged || it.push.acknowledged >= it.read.submitted) {
    return false;
  }
  const SimTable& table = *it.read.table;
  if (!table.bsp()) return true;
  if (it.push.clock >= it.read.effective) return false;
  return !it.history.lives[it.worker].WasKilled(it.push.incarnation) ||
         it.push.clock < it.history.proven(table, it.worker, it.push.incarnation);
}

bool IsWithinBound(const Sighting& it) {
  const std::uint64_t bound = it.read.table->spec.consistency.staleness;
  if (it.push.clock >= it.read.effective || it.read.effective - it.push.clock <= bound) {
    return false;
  }
  return !it.history.lives[it.worker].WasKilled(it.push.incarnation) &&
         it.push.outcome != Outcome::kFailed;
}

}  // namespace leeway::simulation
