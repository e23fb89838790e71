// Random pushes to one shard, for tests that compare stores with each other.
#ifndef LEEWAY_PS_STORE_TESTING_RANDOM_PUSHES_H_
#define LEEWAY_PS_STORE_TESTING_RANDOM_PUSHES_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "ps/store/elements.h"
#include "ps/store/testing/store_test_util.h"
#include "runtime/base/random.h"

namespace leeway::ps {

inline constexpr StoreContext kTestContext = {
    .table = 5, .shard = 1, .num_shards = 3, .block_bytes = 200};
inline constexpr std::uint64_t kTestRowWidth = 5;

template <class Stored>
class RandomPushes {
 public:
  // Keys (dense: blocks) below `key_limit` that belong to the shard of `context`.
  RandomPushes(const TableSpec& spec, bool last_wins, std::uint64_t seed, std::uint64_t key_limit,
               const StoreContext& context = kTestContext)
      : spec_(spec), context_(context), last_wins_(last_wins), random_(seed) {
    const bool dense = spec.kind == TableKind::kDense;
    if (dense) key_limit = std::min(key_limit, proto::NumBlocks(spec, context.block_bytes));
    for (std::uint64_t key = 0; key < key_limit; ++key) {
      const std::uint32_t shard = dense
                                      ? proto::ShardOfBlock(context.table, key, context.num_shards)
                                      : proto::ShardOfKey(key, context.num_shards);
      if (shard == context.shard) keys_.push_back(key);
    }
  }

  PushView Next() { return To(AnyKey()); }

  // Pushes of several workers in one clock; of a dense table all to one block.
  std::vector<PushView> Several() {
    const std::uint64_t block = AnyKey();
    std::vector<PushView> pushes;
    for (std::uint64_t i = 0, size = 1 + random_.Below(4); i < size; ++i) {
      pushes.push_back(To(block));
    }
    return pushes;
  }

  runtime::Random& random() { return random_; }
  const std::vector<std::uint64_t>& keys() const { return keys_; }

 private:
  std::uint64_t AnyKey() { return keys_[random_.Below(keys_.size())]; }

  PushView To(std::uint64_t block) {
    const bool dense = spec_.kind == TableKind::kDense;
    const std::size_t rows = dense ? 1 : random_.Below(6);
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> widths;
    std::vector<Stored> values;
    for (std::size_t i = 0; i < rows; ++i) {
      keys.push_back(dense ? block : AnyKey());
      widths.push_back(WidthFor(keys.back()));
      for (std::uint32_t j = 0; j < widths.back(); ++j) values.push_back(AnyValue());
    }
    PushView push = dense ? DensePush(block, values) : SparsePush(keys, values);
    if (spec_.kind == TableKind::kRagged) push.widths = BufferOf(widths);
    if (random_.Below(2) == 0) push.learning_rate = random_.Uniform();
    return push;
  }

  std::uint32_t WidthFor(std::uint64_t key) {
    if (spec_.kind == TableKind::kDense) {
      return static_cast<std::uint32_t>(proto::ElementsInBlock(spec_, context_.block_bytes, key));
    }
    if (spec_.kind == TableKind::kSparse) return kTestRowWidth;
    return static_cast<std::uint32_t>(last_wins_ ? random_.Below(8) : key % 6);
  }

  Stored AnyValue() {
    if constexpr (std::is_integral_v<Stored>) {
      return static_cast<Stored>(random_.Below(2000)) - 1000;
    } else {
      return Stored(static_cast<ComputeOf<Stored>>(random_.Normal()));
    }
  }

  const TableSpec spec_;
  const StoreContext context_;
  const bool last_wins_;
  runtime::Random random_;
  std::vector<std::uint64_t> keys_;
};

// Key (dense: block) → steps, values and state, copied.
using Content = std::map<std::uint64_t, std::tuple<std::uint64_t, std::string, std::string>>;

// Later pieces replace what earlier ones have, as Load does.
inline Content ContentOf(std::span<const FrozenPiece> pieces, Content content = {}) {
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  for (const FrozenPiece& piece : pieces) {
    ForEachRow(piece, [&](const FrozenRow& row) {
      content[row.key] = {row.steps, text(row.values), text(row.state)};
    });
  }
  return content;
}
inline Content ContentOf(const Shard& shard) { return ContentOf(shard->Freeze().pieces); }

inline bool LastWins(const TableSpec& spec) { return spec.updater.name == "assign"; }

using TableParameter = std::tuple<TableKind, std::string>;  // and updater

inline TableSpec SpecOf(const TableParameter& parameter, DType dtype) {
  const auto& [kind, updater] = parameter;
  TableSpec spec = kind == TableKind::kDense    ? TableSpec::Dense("t", {11, 130}, dtype)
                   : kind == TableKind::kSparse ? TableSpec::Sparse("t", kTestRowWidth, dtype)
                                                : TableSpec::Ragged("t", dtype);
  spec = WithUpdater(spec, updater);
  spec.initializer = IsInteger(dtype) ? Initializer::Constant(-3) : Initializer::Uniform(-1, 1, 77);
  if (updater == "sgd") spec.updater.parameters["learning_rate"] = 0.125;
  return spec;
}

inline std::string NameOf(const testing::TestParamInfo<TableParameter>& test) {
  constexpr const char* kKinds[] = {"Dense", "Sparse", "Ragged"};
  const auto& [kind, updater] = test.param;
  return absl::StrCat(kKinds[static_cast<int>(kind)], "_", updater);
}

// `check(static_cast<Stored*>(nullptr), spec)` for each dtype that the updater supports.
template <class Check>
void ForEachDType(const TableParameter& parameter, const Check& check) {
  const std::string& updater = std::get<1>(parameter);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (IsInteger(dtype) && updater != "add" && updater != "assign") continue;
    SCOPED_TRACE(std::string(Name(dtype)));
    VisitStored(dtype, [&](auto* stored) { check(stored, SpecOf(parameter, dtype)); });
  }
}

inline const auto kAllTables =
    testing::Combine(testing::Values(TableKind::kDense, TableKind::kSparse, TableKind::kRagged),
                     testing::Values("assign", "add", "sgd", "momentum", "nesterov", "adagrad",
                                     "rmsprop", "adam", "adamw", "ftrl"));

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_TESTING_RANDOM_PUSHES_H_
