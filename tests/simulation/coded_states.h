// The states that the places of coded tables with one writer go through, as its messages lead from
// one to the next: the oracle of what servers answer where that is the values themselves.
//
// What a gradient table answers is encoded by the server, by the codec of the clock that closes; a
// server that does not know yet that this has been changed goes by the one before. So there may be
// several states that an update leads to, until an answer shows which of them it was.
#ifndef LEEWAY_TESTS_SIMULATION_CODED_STATES_H_
#define LEEWAY_TESTS_SIMULATION_CODED_STATES_H_

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class CodedStates {
 public:
  using Values = std::vector<float>;

  // Takes the next push to that place, as the server decodes it, at that rate. `id`: of the table;
  // `choices`: by which of its codecs the server may encode answers. Returns the values after it,
  // one of which it has; empty: there are too many, and nothing is known of this place any more.
  std::vector<Values> Next(const SimTable& table, std::uint32_t id, std::uint32_t place,
                           std::span<const float> push, double rate,
                           std::span<const std::uint32_t> choices);

  // A server has answered that: states that do not go back to it were not gone through.
  void OnAnswered(const SimTable& table, std::uint32_t place, std::span<const float> values);

 private:
  // One way that a place may have gone.
  struct Way {
    Values values;
    Values residual;                    // of a gradient table, times the learning rate
    std::vector<std::uint64_t> hashes;  // of all values on the way
  };
  struct Place {
    std::vector<Way> ways = {Way{}};
    std::uint64_t updates = 0;
  };

  // A clock's sum with what earlier answers have lost, as the codec makes it (dist-EF-SGD).
  static void NextGradient(const SimTable& table, std::uint64_t seed, std::span<const float> push,
                           double rate, const compress::TableCodec& codec, Way* way);

  std::map<std::pair<std::uint32_t, std::uint32_t>, Place> places_;  // by table, place
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODED_STATES_H_
