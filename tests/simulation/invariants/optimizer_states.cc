// Checks that a place of a table with one writer holds one of the states that its writer's pushes
// lead to one by one, and none older than the reader was promised.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/random_operations/plain_updater.h"
#include "tests/simulation/invariants/invariant.h"
#include "tests/simulation/visibility.h"

namespace leeway::simulation {
namespace {

// As a part of the least change of a step, which is 0.02.
constexpr float kStateTolerance = 1e-3f;

class OptimizerStates final : public Invariant {
 public:
  absl::string_view name() const override { return "optimizer states"; }

  void OnFloatPush(const SimTable& table, std::uint32_t place,
                   std::span<const float> gradient) override {
    Model& model = models_[{table.index, place}];
    model.elements.resize(gradient.size());
    std::vector<float> after;
    for (std::size_t e = 0; e < gradient.size(); ++e) {
      tests::PlainUpdate(table.spec.updater.name, gradient[e], &model.elements[e]);
      after.push_back(model.elements[e].value);
    }
    model.states.push_back({std::move(after)});
  }

  void OnState(const SimTable& table, std::uint32_t place,
               const std::vector<std::vector<float>>& either) override {
    if (table.has_states()) models_[{table.index, place}].states.push_back(either);
  }

  std::string Judge(const Read& read, const History& history) override {
    if (!read.table->has_states()) return "";
    for (std::size_t i = 0; i < read.places.size(); ++i) {
      const std::uint32_t place = read.places[i];
      const Model& model = models_[{read.table->index, place}];
      const std::size_t fewest = PushesPromised(read, history, place);
      bool found = false;
      for (std::size_t n = fewest; n <= model.states.size() && !found; ++n) {
        found = n == 0 ? Holds(read.FloatsOf(i), nullptr)
                       : HoldsOne(read.FloatsOf(i), model.states[n - 1]);
      }
      if (found) continue;
      return absl::StrCat(read.table->dense() ? "block " : "row ", place, " of '",
                          read.table->spec.name, "' (", read.table->spec.updater.name, ", ",
                          read.table->spec.consistency.ToString(), ") holds ", read.FloatsOf(i)[0],
                          " for ", DescribeReader(read), ", which is no state after ", fewest,
                          " to ", model.states.size(), " pushes");
    }
    return "";
  }

 private:
  struct Model {
    std::vector<tests::Element<float>> elements;
    // After the first push, the second, …: one of these.
    std::vector<std::vector<std::vector<float>>> states;
  };

  static bool HoldsOne(std::span<const float> values,
                       const std::vector<std::vector<float>>& states) {
    if (states.empty()) return true;
    return std::any_of(states.begin(), states.end(),
                       [&](const auto& state) { return Holds(values, &state); });
  }

  static bool Holds(std::span<const float> values, const std::vector<float>* state) {
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (std::abs(values[e] - (state == nullptr ? 0.0f : (*state)[e])) > kStateTolerance)
        return false;
    }
    return true;
  }

  // The number of the writer's pushes to that place that the read must have seen.
  static std::size_t PushesPromised(const Read& read, const History& history, std::uint32_t place) {
    const std::uint32_t writer = read.table->WriterOf(place);
    const std::vector<Push>& pushes = history.pushes(*read.table, writer);
    std::size_t here = history.updates_before(*read.table, place), promised = here;
    for (std::size_t number = 0; number < pushes.size(); ++number) {
      if (((pushes[number].places >> place) & 1) == 0) continue;
      ++here;
      const Sighting it{read, history, writer, number, pushes[number]};
      if (IsOwnWrite(it) || IsAcknowledged(it) || IsWithinBound(it)) promised = here;
    }
    return promised;
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, Model> models_;  // by table, place
};

}  // namespace

std::unique_ptr<Invariant> NewOptimizerStates() { return std::make_unique<OptimizerStates>(); }

}  // namespace leeway::simulation
