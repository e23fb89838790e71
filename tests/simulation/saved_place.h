// A SavedPlace is what a checkpoint has of one place of a table of floats.
#ifndef LEEWAY_TESTS_SIMULATION_SAVED_PLACE_H_
#define LEEWAY_TESTS_SIMULATION_SAVED_PLACE_H_

#include <cstdint>
#include <vector>

namespace leeway::simulation {

struct SavedPlace {
  std::uint64_t updates = 0;
  std::vector<float> values;
  // Of an encoded block, behind the updater's state: what servers know that workers hold, or the
  // residual of a gradient table; empty: none.
  std::vector<float> feedback;
  std::uint64_t version = 0;   // of what workers hold; 0: not known
  bool codec_changed = false;  // of its table: what workers hold may be of an earlier time
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SAVED_PLACE_H_
