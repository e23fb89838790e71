// Random operations on every kind of table, with every dtype and updater, against a model that is
// as plain as can be: rows in a std::map, one element computed at a time. All bits agree.
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "ps/store/testing/store_test_util.h"
#include "ps/updaters/registry.h"
#include "runtime/base/random.h"

namespace leeway::ps {
namespace {

constexpr int kOperations = 800;  // a table; 132 tables
constexpr StoreContext kContext = {.table = 5, .shard = 1, .num_shards = 3, .block_bytes = 200};
constexpr std::uint64_t kWidth = 5;

template <class T>
constexpr bool kHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <class Stored>
struct Types {
  using Compute = std::conditional_t<kHalf<Stored>, float, Stored>;
};

// One row (dense: one block) of one push.
template <class Stored>
struct RowPush {
  std::uint64_t key;
  std::vector<Stored> values;
};

template <class Stored>
class Model {
 public:
  using Compute = typename Types<Stored>::Compute;

  Model(const TableSpec& spec, const Updater& updater) : spec_(spec), updater_(updater) {}

  std::vector<Stored> Get(std::uint64_t key, std::size_t width) const {
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second.values;
    std::vector<Stored> values;
    for (std::size_t i = 0; i < width; ++i) values.push_back(Initial(key, i));
    return values;
  }

  std::optional<std::size_t> WidthOf(std::uint64_t key) const {
    const auto found = rows_.find(key);
    if (found == rows_.end()) return std::nullopt;
    return found->second.values.size();
  }

  // All pushes of one key, in order, as one update.
  void Update(std::uint64_t key, const std::vector<std::vector<Stored>>& pushes, double rate,
              std::uint32_t divisor) {
    const bool last = updater_.combine() == Updater::Combine::kLast;
    const std::size_t width = pushes.back().size();
    if (WidthOf(key) != width) Reset(key, width);
    Row& row = rows_[key];
    ++row.steps;
    for (std::size_t i = 0; i < width; ++i) {
      Compute gradient = static_cast<Compute>(last ? pushes.back()[i] : pushes.front()[i]);
      for (std::size_t j = 1; j < pushes.size() && !last; ++j) {
        gradient += static_cast<Compute>(pushes[j][i]);
      }
      if (divisor != 1 && !last)
        gradient *= static_cast<Compute>(1) / static_cast<Compute>(divisor);
      std::vector<Compute*> state;
      for (auto& slot : row.state) state.push_back(&slot[i]);
      Compute value = static_cast<Compute>(row.values[i]);
      updater_.Update(UpdateRun<Compute>{&value, &gradient, state.data(), 1, row.steps, rate});
      row.values[i] = Stored(value);
    }
  }

 private:
  struct Row {
    std::vector<Stored> values;
    std::vector<std::vector<Compute>> state;
    std::uint64_t steps = 0;
  };

  Stored Initial(std::uint64_t key, std::uint64_t column) const {
    if (IsInteger(spec_.dtype)) return Stored(static_cast<Compute>(spec_.initializer.a));
    const std::uint64_t row = spec_.kind == TableKind::kDense
                                  ? key * proto::BlockElements(spec_.dtype, kContext.block_bytes)
                                  : runtime::StableHash(key);
    const auto& [kind, low, high, seed] = spec_.initializer;
    const double at = runtime::UniformAt(seed, runtime::StableHash(spec_.name), row + column);
    return Stored(static_cast<Compute>(low + (high - low) * at));
  }

  void Reset(std::uint64_t key, std::size_t width) {
    Row& row = rows_[key];
    row.values.clear();
    for (std::size_t i = 0; i < width; ++i) row.values.push_back(Initial(key, i));
    row.state.clear();
    for (int slot = 0; slot < updater_.state_slots(); ++slot) {
      row.state.emplace_back(width, static_cast<Compute>(updater_.initial_state(slot)));
    }
  }

  const TableSpec& spec_;
  const Updater& updater_;
  std::map<std::uint64_t, Row> rows_;
};

template <class Stored>
class Comparison {
 public:
  explicit Comparison(const TableSpec& spec)
      : spec_(spec), shard_(spec, kContext), model_(spec_, shard_.updater()), random_(1) {
    for (std::uint64_t key = 0; keys_.size() < 20; ++key) {
      const bool dense = spec_.kind == TableKind::kDense;
      if ((dense ? proto::ShardOfBlock(kContext.table, key, kContext.num_shards)
                 : proto::ShardOfKey(key, kContext.num_shards)) == kContext.shard) {
        if (dense && key >= proto::NumBlocks(spec_, kContext.block_bytes)) break;
        keys_.push_back(key);
      }
    }
  }

  void Run() {
    for (int i = 0; i < kOperations && !testing::Test::HasFailure(); ++i) {
      if (random_.Below(3) == 0) {
        Pull();
      } else {
        Push();
      }
    }
    for (const auto& [buffer, bytes] : held_) EXPECT_EQ(buffer.text(), bytes);
    EXPECT_GT(applied_, kOperations / 2);
  }

 private:
  std::uint64_t AnyKey() { return keys_[random_.Below(keys_.size())]; }

  std::size_t WidthFor(std::uint64_t key) {
    if (spec_.kind == TableKind::kDense) {
      return proto::ElementsInBlock(spec_, kContext.block_bytes, key);
    }
    if (spec_.kind == TableKind::kSparse) return kWidth;
    const bool free = shard_.updater().combine() == Updater::Combine::kLast;
    if (free) return random_.Below(8);
    return model_.WidthOf(key).value_or(key % 6);
  }

  Stored AnyValue() {
    if constexpr (std::is_integral_v<Stored>) {
      return static_cast<Stored>(random_.Below(2000)) - 1000;
    } else {
      return Stored(static_cast<typename Types<Stored>::Compute>(random_.Normal()));
    }
  }

  PushView AnyPush(std::uint64_t dense_key, std::vector<RowPush<Stored>>& rows) {
    const bool dense = spec_.kind == TableKind::kDense;
    const std::size_t size = dense ? 1 : random_.Below(6);
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> widths;
    std::vector<Stored> all;
    for (std::size_t i = 0; i < size; ++i) {
      RowPush<Stored> row = {dense ? dense_key : AnyKey(), {}};
      row.values.resize(WidthFor(row.key));
      for (Stored& value : row.values) value = AnyValue();
      keys.push_back(row.key);
      widths.push_back(static_cast<std::uint32_t>(row.values.size()));
      all.insert(all.end(), row.values.begin(), row.values.end());
      rows.push_back(std::move(row));
    }
    PushView push = dense ? DensePush(dense_key, all) : SparsePush(keys, all);
    if (spec_.kind == TableKind::kRagged) push.widths = BufferOf(widths);
    if (random_.Below(2) == 0) push.learning_rate = random_.Uniform();
    return push;
  }

  void Push() {
    const bool combined = random_.Below(2) == 0;
    const std::size_t size = combined ? 1 + random_.Below(4) : 1;
    const std::uint64_t dense_key = AnyKey();
    double rate = spec_.updater.parameters.contains("learning_rate")
                      ? spec_.updater.parameters["learning_rate"]
                      : kNoRate;
    std::vector<PushView> pushes;
    std::vector<RowPush<Stored>> rows;
    for (std::size_t i = 0; i < size; ++i) {
      pushes.push_back(AnyPush(dense_key, rows));
      if (!std::isnan(pushes.back().learning_rate)) rate = pushes.back().learning_rate;
    }
    const auto contributors = static_cast<std::uint32_t>(1 + random_.Below(4));
    const absl::Status status =
        combined ? shard_->ApplyCombined(pushes, contributors) : shard_->Apply(pushes.front());
    ASSERT_TRUE(status.ok()) << status;
    std::map<std::uint64_t, std::vector<std::vector<Stored>>> by_key;
    for (const RowPush<Stored>& row : rows) by_key[row.key].push_back(row.values);
    const bool mean = combined && spec_.aggregate == Aggregate::kMean;
    for (const auto& [key, values] : by_key) {
      model_.Update(key, values, rate, mean ? contributors : 1);
    }
    ++applied_;
  }

  void Pull() {
    PullView pull;
    std::vector<std::uint64_t> keys;
    if (spec_.kind == TableKind::kDense) {
      keys.push_back(AnyKey());
      pull.block = keys[0];
      pull.elements = WidthFor(keys[0]);
    } else {
      for (std::size_t i = 0; i < 4; ++i) keys.push_back(AnyKey());
      pull.keys = BufferOf(keys);
    }
    const auto result = shard_->Pull(pull);
    ASSERT_TRUE(result.ok()) << result.status();
    std::vector<Stored> expected;
    for (const std::uint64_t key : keys) {
      const std::size_t unseen = spec_.kind == TableKind::kRagged ? 0 : WidthFor(key);
      const auto row = model_.Get(key, unseen);
      expected.insert(expected.end(), row.begin(), row.end());
    }
    const runtime::Buffer& values = result->payload.back();
    ASSERT_EQ(values.size(), expected.size() * sizeof(Stored));
    // Bits, not values. Nothing here becomes NaN.
    ASSERT_TRUE(expected.empty() ||
                std::memcmp(values.data(), expected.data(), values.size()) == 0);
    ASSERT_FALSE(HasNonFinite(spec_.dtype, values.bytes()));
    if (random_.Below(4) == 0) held_.emplace_back(values, std::string(values.text()));
  }

  TableSpec spec_;
  const Shard shard_;
  Model<Stored> model_;
  runtime::Random random_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::pair<runtime::Buffer, std::string>> held_;  // what was pulled, and its bytes
  int applied_ = 0;
};

using Parameter = std::tuple<TableKind, std::string>;

class StoreModel : public testing::TestWithParam<Parameter> {};

template <class Stored>
void Compare(TableKind kind, const std::string& updater) {
  constexpr DType kDType = DTypeOf<Stored>;
  SCOPED_TRACE(std::string(Name(kDType)));
  TableSpec spec = kind == TableKind::kDense    ? TableSpec::Dense("t", {11, 130}, kDType)
                   : kind == TableKind::kSparse ? TableSpec::Sparse("t", kWidth, kDType)
                                                : TableSpec::Ragged("t", kDType);
  spec = WithUpdater(spec, updater);
  const bool integer = IsInteger(kDType);
  spec.initializer = integer ? Initializer::Constant(-3) : Initializer::Uniform(-1, 1, 77);
  if (!integer && updater.size() % 2 == 0) spec.aggregate = Aggregate::kMean;
  if (updater == "sgd") spec.updater.parameters["learning_rate"] = 0.125;
  Comparison<Stored>(spec).Run();
}

TEST_P(StoreModel, RandomOperations) {
  const auto& [kind, updater] = GetParam();
  Compare<float>(kind, updater);
  Compare<double>(kind, updater);
  Compare<Float16>(kind, updater);
  Compare<BFloat16>(kind, updater);
  if (updater == "add" || updater == "assign") {
    Compare<std::int32_t>(kind, updater);
    Compare<std::int64_t>(kind, updater);
  }
}

std::string NameOf(const testing::TestParamInfo<Parameter>& test) {
  constexpr const char* kKinds[] = {"Dense", "Sparse", "Ragged"};
  const auto& [kind, updater] = test.param;
  return absl::StrCat(kKinds[static_cast<int>(kind)], "_", updater);
}

INSTANTIATE_TEST_SUITE_P(
    All, StoreModel,
    testing::Combine(testing::Values(TableKind::kDense, TableKind::kSparse, TableKind::kRagged),
                     testing::Values("assign", "add", "sgd", "momentum", "nesterov", "adagrad",
                                     "rmsprop", "adam", "adamw", "ftrl")),
    NameOf);

}  // namespace
}  // namespace leeway::ps
