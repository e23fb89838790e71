// The states that the places of coded tables with one writer go through, as its messages lead from
// one to the next: the oracle of what servers answer where that is the values themselves.
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
  // Takes the next push to that place, as the server decodes it, at that rate. Returns the values
  // after it. `id`: of the table.
  std::vector<float> Next(const SimTable& table, std::uint32_t id, std::uint32_t place,
                          std::span<const float> push, double rate);

 private:
  struct State {
    std::vector<float> values;
    std::vector<float> residual;  // of a gradient table, times the learning rate
    std::uint64_t updates = 0;
  };
  // A clock's sum with what earlier answers have lost, as the codec makes it (dist-EF-SGD).
  void NextGradient(const SimTable& table, std::uint32_t id, std::uint32_t place,
                    std::span<const float> push, double rate, State* state) const;

  std::map<std::pair<std::uint32_t, std::uint32_t>, State> states_;  // by table, place
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODED_STATES_H_
