// A RandomTable is a table under random operations by one worker, with the plain model that it must
// equal.
//
// A worker's operations on a shard take effect in the order in which they were submitted, so the
// result of each pull is known when it is submitted; many can be under way at once.
#ifndef LEEWAY_TESTS_RANDOM_OPERATIONS_RANDOM_TABLE_H_
#define LEEWAY_TESTS_RANDOM_OPERATIONS_RANDOM_TABLE_H_

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "leeway/worker.h"
#include "runtime/base/random.h"
#include "tests/random_operations/plain_updater.h"

namespace leeway::tests {

// An operation under way. `mismatch` is called once it has completed, and returns the fault, or
// nothing. It also keeps the operation's buffers alive.
struct Pending {
  Ticket ticket;
  std::function<std::string()> mismatch;
};

class RandomTable {
 public:
  virtual ~RandomTable() = default;
  virtual Pending Submit(runtime::Random* random) = 0;
};

// Parameters under which the servers' updater computes the same as plain_updater.h.
UpdaterSpec SpecOf(const std::string& updater);

template <class T>
class TypedRandomTable final : public RandomTable {
 public:
  static constexpr std::uint64_t kKeys = 60, kRowWidth = 3;

  TypedRandomTable(Table table) : table_(std::move(table)), spec_(table_.spec()) {
    if (dense()) elements_.resize(spec_.NumElements());
  }

  Pending Submit(runtime::Random* random) override {
    const std::uint64_t kind = random->Below(3);
    auto call = std::make_shared<CallState>();
    if (!dense()) call->keys = RandomKeys(random);
    const std::size_t size = dense() ? elements_.size() : call->keys.size() * kRowWidth;
    if (kind != 1) {
      for (std::size_t i = 0; i < size; ++i) call->pushed.push_back(RandomValue(random));
      ApplyToModel(*call);
    }
    if (kind != 0) {
      call->pulled.resize(size);
      call->expected = ReadModel(call->keys, size);
    }
    return {Start(kind, *call), [call, name = spec_.name] { return Compare(*call, name); }};
  }

 private:
  using C = Computed<T>;

  struct CallState {
    std::vector<std::uint64_t> keys;
    std::vector<T> pushed, pulled, expected;
  };

  bool dense() const { return spec_.kind == TableKind::kDense; }
  bool last_wins() const { return spec_.updater.name == "assign"; }

  Ticket Start(std::uint64_t kind, CallState& call) const {
    const std::span<const std::uint64_t> keys(call.keys);
    const std::span<const T> pushed(call.pushed);
    const std::span<T> pulled(call.pulled);
    if (dense()) {
      return kind == 0   ? table_.Push(pushed)
             : kind == 1 ? table_.Pull(pulled)
                         : table_.PushPull(pushed, pulled);
    }
    return kind == 0   ? table_.Push(keys, pushed)
           : kind == 1 ? table_.Pull(keys, pulled)
                       : table_.PushPull(keys, pushed, pulled);
  }

  // Unsorted, often repeated keys.
  static std::vector<std::uint64_t> RandomKeys(runtime::Random* random) {
    std::vector<std::uint64_t> keys(1 + random->Below(8));
    for (auto& key : keys) key = random->Below(kKeys) * 0x9e3779b97f4a7c15ull;
    return keys;
  }

  static T RandomValue(runtime::Random* random) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(random->Below(2001)) - 1000;
    } else {
      return static_cast<T>(static_cast<float>(random->Uniform() * 2 - 1));
    }
  }

  void ApplyToModel(const CallState& call) {
    if (dense()) {
      for (std::size_t i = 0; i < call.pushed.size(); ++i) {
        PlainUpdate(spec_.updater.name, static_cast<C>(call.pushed[i]), &elements_[i]);
      }
      return;
    }
    std::map<std::uint64_t, std::vector<C>> combined;
    for (std::size_t i = 0; i < call.keys.size(); ++i) {
      auto [row, fresh] = combined.try_emplace(call.keys[i], kRowWidth, C{});
      for (std::size_t j = 0; j < kRowWidth; ++j) {
        const C g = static_cast<C>(call.pushed[i * kRowWidth + j]);
        C& sum = row->second[j];
        sum = fresh || last_wins() ? g : sum + g;
      }
    }
    for (const auto& [key, row] : combined) {
      auto& elements = rows_[key];
      elements.resize(kRowWidth);
      for (std::size_t j = 0; j < kRowWidth; ++j) {
        PlainUpdate(spec_.updater.name, Rounded(row[j]), &elements[j]);
      }
    }
  }

  // Combined rows have the table's own type on the wire, and are rounded once.
  static C Rounded(C x) { return static_cast<C>(static_cast<T>(x)); }

  std::vector<T> ReadModel(const std::vector<std::uint64_t>& keys, std::size_t size) const {
    std::vector<T> values;
    values.reserve(size);
    if (dense()) {
      for (const auto& element : elements_) values.push_back(element.value);
      return values;
    }
    for (const std::uint64_t key : keys) {
      const auto row = rows_.find(key);
      for (std::size_t j = 0; j < kRowWidth; ++j) {
        values.push_back(row == rows_.end() ? T{} : row->second[j].value);
      }
    }
    return values;
  }

  static std::string Compare(const CallState& call, const std::string& name) {
    for (std::size_t i = 0; i < call.expected.size(); ++i) {
      const double want = static_cast<double>(static_cast<C>(call.expected[i]));
      const double got = static_cast<double>(static_cast<C>(call.pulled[i]));
      if (!(std::abs(want - got) <= kTolerance * (1 + std::abs(want)))) {
        return absl::StrCat("table ", name, ", element ", i, " of ", call.expected.size(),
                            ": the model has ", want, ", the servers gave ", got);
      }
    }
    return "";
  }

  static constexpr double kTolerance = std::is_integral_v<T> ? 0
                                       : sizeof(T) == 2      ? 1e-6
                                       : sizeof(T) == 4      ? 1e-3
                                                             : 1e-9;

  Table table_;
  TableSpec spec_;
  std::vector<Element<T>> elements_;                       // dense
  std::map<std::uint64_t, std::vector<Element<T>>> rows_;  // sparse
};

// A table for every possible pair of updater and dtype, dense and sparse, created by `worker` under
// `prefix`.
absl::StatusOr<std::vector<std::unique_ptr<RandomTable>>> CreateRandomTables(
    Worker* worker, const std::string& prefix);

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_RANDOM_OPERATIONS_RANDOM_TABLE_H_
