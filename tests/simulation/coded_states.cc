#include "tests/simulation/coded_states.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "runtime/base/random.h"

namespace leeway::simulation {
namespace {

// There are about as many answers to pulls as updates, so that there are few ways even while a
// server does not know of a switch.
constexpr std::size_t kWaysMax = 64;

// Also used for the state of a gradient table's place before its first update.
std::uint64_t HashOf(std::span<const float> values) {
  return runtime::StableHash({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace

std::vector<CodedStates::Values> CodedStates::Next(const SimTable& table, std::uint32_t id,
                                                   std::uint32_t place, std::span<const float> push,
                                                   double rate,
                                                   std::span<const std::uint32_t> choices) {
  PlaceState& state = places_[{table.index, place}];
  ++state.updates;
  const bool gradient = table.spec.updater.name == "gradient";
  const std::uint64_t seed = runtime::RandomAt(id, place, state.updates);
  const float factor = table.spec.updater.name == "sgd" ? -static_cast<float>(rate) : 1.0f;
  std::vector<Way> ways;
  for (Way& before : state.ways) {
    for (std::size_t i = 0; i < (gradient ? choices.size() : 1); ++i) {
      Way way = before;
      way.values.resize(push.size());
      way.residual.resize(push.size());
      if (gradient) {
        NextGradient(table, seed, push, rate, table.codecs.choices[choices[i]], &way);
        way.hashes.push_back(HashOf(way.values));
      } else {
        for (std::size_t j = 0; j < push.size(); ++j) way.values[j] += factor * push[j];
      }
      ways.push_back(std::move(way));
    }
  }
  state.ways = std::move(ways);
  if (state.ways.size() > kWaysMax) state.ways.clear();
  std::vector<Values> after;
  for (const Way& way : state.ways) after.push_back(way.values);
  return after;
}

void CodedStates::BeginWith(const SimTable& table, std::uint32_t place, std::uint64_t updates,
                            Values values, Values residual) {
  const std::uint64_t hash = HashOf(values);
  places_[{table.index, place}] = {
      .ways = {Way{.values = std::move(values), .residual = std::move(residual), .hashes = {hash}}},
      .updates = updates};
}

void CodedStates::OnAnswered(const SimTable& table, std::uint32_t place,
                             std::span<const float> values) {
  PlaceState& state = places_[{table.index, place}];
  if (state.ways.size() < 2) return;
  const std::uint64_t hash = HashOf(values);
  const auto went = [hash](const Way& way) {
    return std::ranges::find(way.hashes, hash) != way.hashes.end();
  };
  // If it is none of them, the reader's check reports that.
  if (std::ranges::none_of(state.ways, went)) return;
  std::erase_if(state.ways, [&](const Way& way) { return !went(way); });
}

void CodedStates::NextGradient(const SimTable& table, std::uint64_t seed,
                               std::span<const float> push, double rate,
                               const compress::TableCodec& by, Way* way) {
  Values carried(push.begin(), push.end());
  if (table.codecs.AnyHas(&compress::TableCodec::server_feedback)) {
    for (std::size_t i = 0; i < push.size(); ++i) {
      carried[i] += way->residual[i] * static_cast<float>(1 / rate);
    }
  }
  way->values = carried;
  if (by.encodes() && !by.codec->lossless()) {
    EncodeTerms terms{.shape = compress::BlockShape(table.spec, by, push.size())};
    terms.seed = seed;
    Values codec_state(by.codec->StateElements(terms.shape));
    terms.state = codec_state;
    std::vector<std::byte> message(by.codec->EncodedBytesMax(terms.shape));
    const auto bytes = by.codec->Encode(carried.data(), terms, message);
    if (bytes.ok() && *bytes < push.size() * sizeof(float)) {
      // What the codec has written it can read.
      by.codec->Decode(std::span(message).first(*bytes), terms.shape, way->values.data())
          .IgnoreError();
    }
  }
  for (std::size_t i = 0; i < push.size(); ++i) {
    way->residual[i] =
        by.server_feedback ? static_cast<float>(rate) * (carried[i] - way->values[i]) : 0.0f;
  }
}

}  // namespace leeway::simulation
