#include "tests/simulation/coded_states.h"

#include <cstddef>

#include "runtime/random.h"

namespace leeway::simulation {

std::vector<float> CodedStates::Next(const SimTable& table, std::uint32_t id, std::uint32_t place,
                                     std::span<const float> push, double rate) {
  State& state = states_[{table.index, place}];
  state.values.resize(push.size());
  ++state.updates;
  if (table.spec.updater.name == "gradient") {
    NextGradient(table, id, place, push, rate, &state);
    return state.values;
  }
  const float factor = table.spec.updater.name == "sgd" ? -static_cast<float>(rate) : 1.0f;
  for (std::size_t i = 0; i < push.size(); ++i) state.values[i] += factor * push[i];
  return state.values;
}

void CodedStates::NextGradient(const SimTable& table, std::uint32_t id, std::uint32_t place,
                               std::span<const float> push, double rate, State* state) const {
  const Codec& codec = *table.codec.codec;
  std::vector<float> carried(push.begin(), push.end());
  state->residual.resize(push.size());
  const bool feedback = table.codec.server_feedback;
  for (std::size_t i = 0; feedback && i < push.size(); ++i) {
    carried[i] += state->residual[i] / static_cast<float>(rate);
  }
  EncodeTerms terms{.shape = compress::BlockShape(table.spec, table.codec, push.size())};
  terms.seed = runtime::RandomAt(id, place, state->updates);
  std::vector<float> codec_state(codec.StateElements(terms.shape));
  terms.state = codec_state;
  std::vector<std::byte> message(codec.EncodedBytesMax(terms.shape));
  const auto bytes = codec.Encode(carried.data(), terms, message);
  state->values = carried;
  if (bytes.ok() && *bytes < push.size() * sizeof(float)) {
    // What the codec has written it can read.
    codec.Decode(std::span(message).first(*bytes), terms.shape, state->values.data()).IgnoreError();
  }
  for (std::size_t i = 0; feedback && i < push.size(); ++i) {
    state->residual[i] = static_cast<float>(rate) * (carried[i] - state->values[i]);
  }
}

}  // namespace leeway::simulation
