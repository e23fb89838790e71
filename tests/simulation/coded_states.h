// CodedStates computes the states of places of coded tables with one writer, as its messages lead
// from one to the next: the oracle of servers' answers that are the values themselves.
//
// A server encodes the answers of a gradient table by the codec of the clock that closes; a server
// that does not know of a switch yet uses the codec before. So an update may lead to several
// states, until an answer shows which of them it was.
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
  // `choices`: the codecs that the server may encode answers with. Returns the possible values
  // after it; empty: there are too many, and from then on nothing is known of this place.
  std::vector<Values> Next(const SimTable& table, std::uint32_t id, std::uint32_t place,
                           std::span<const float> push, double rate,
                           std::span<const std::uint32_t> choices);

  // The run begins with these values after so many updates. `residual`: of a gradient table.
  void BeginWith(const SimTable& table, std::uint32_t place, std::uint64_t updates, Values values,
                 Values residual);
  // A server has answered these values: drops states that they do not follow from.
  void OnAnswered(const SimTable& table, std::uint32_t place, std::span<const float> values);

 private:
  // One possible sequence of states of a place.
  struct Way {
    Values values;
    Values residual;                    // of a gradient table, times the learning rate
    std::vector<std::uint64_t> hashes;  // of all values in the sequence
  };
  struct PlaceState {
    std::vector<Way> ways = {Way{}};
    std::uint64_t updates = 0;
  };

  // A clock's sum plus the residual of earlier answers, as the codec makes it (dist-EF-SGD).
  static void NextGradient(const SimTable& table, std::uint64_t seed, std::span<const float> push,
                           double rate, const compress::TableCodec& codec, Way* way);

  std::map<std::pair<std::uint32_t, std::uint32_t>, PlaceState> places_;  // by table, place
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODED_STATES_H_
