// The pushes that a read must have seen, by docs/consistency.md: one function a promise.
#ifndef LEEWAY_TESTS_SIMULATION_VISIBILITY_H_
#define LEEWAY_TESTS_SIMULATION_VISIBILITY_H_

#include <cstddef>
#include <cstdint>

#include "tests/simulation/history.h"

namespace leeway::simulation {

// Everything that decides about one push of one worker and one read of the same table.
struct Sighting {
  const Read& read;
  const History& history;
  std::uint32_t worker;
  std::size_t number;
  const Push& push;
};

// Pushes of which a part was dropped are promised nothing.
//
// The reader's own pushes before the read; where clocks close those of the iterations it has ended,
// and where pushes are collected by their number none.
bool IsOwnWrite(const Sighting& it);
// In SSP and ASP pushes that were acknowledged before the read was submitted. In BSP pushes that
// were acknowledged in a clock that is closed for the reader; a killed worker's count only if its
// tick is known to have counted. Where a count of workers closes clocks those of a closed clock.
bool IsAcknowledged(const Sighting& it);
// Every living worker's pushes whose clock is more than the bound below the reader's effective
// clock, where all of them count for the bound.
bool IsWithinBound(const Sighting& it);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_VISIBILITY_H_
