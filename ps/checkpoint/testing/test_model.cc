#include "ps/checkpoint/testing/test_model.h"

#include <gtest/gtest.h>

#include "proto/messages/layout.h"
#include "ps/store/factory/new_shard_store.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

constexpr std::uint64_t kKeys = 300;
constexpr std::uint64_t kRowWidth = 5;

TableSpec With(TableSpec spec, const char* updater) {
  spec.updater.name = updater;
  if (spec.kind != TableKind::kRagged) spec.initializer = Initializer::Uniform(-1, 1, 7);
  return spec;
}

template <class T>
runtime::Buffer RandomValues(runtime::Random* random, std::uint64_t size) {
  std::vector<T> values;
  for (std::uint64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<T>(static_cast<float>(random->Normal())));
  }
  return runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(T));
}

PushView RandomPush(const TableSpec& spec, std::uint64_t key, runtime::Random* random) {
  PushView push{.learning_rate = 0.01};
  if (spec.kind == TableKind::kDense) {
    push.block = key;
    push.values =
        RandomValues<BFloat16>(random, proto::ElementsInBlock(spec, kTestBlockBytes, key));
    return push;
  }
  push.keys = runtime::Buffer::CopyOf(&key, sizeof(key));
  if (spec.kind == TableKind::kSparse) {
    push.values = RandomValues<float>(random, kRowWidth);
    return push;
  }
  const auto width = static_cast<std::uint32_t>(key % 9);
  push.widths = runtime::Buffer::CopyOf(&width, sizeof(width));
  push.values = RandomValues<double>(random, width);
  return push;
}

}  // namespace

std::vector<checkpoint::TableEntry> TestModel::Tables() {
  return {
      {.id = 1, .spec = With(TableSpec::Dense("w/block/1", {9, 1000}, DType::kBFloat16), "adam")},
      {.id = 3, .spec = With(TableSpec::Sparse("émb \"1\"", kRowWidth), "adagrad")},
      {.id = 4, .spec = With(TableSpec::Ragged("ragged", DType::kFloat64), "momentum")}};
}

TestModel::TestModel(std::uint32_t num_shards) : num_shards_(num_shards) {
  for (const checkpoint::TableEntry& entry : Tables()) {
    Table table{.entry = entry, .updater = nullptr, .shards = {}, .generations = {}};
    auto updater = MakeUpdater(entry.spec);
    EXPECT_TRUE(updater.ok()) << updater.status();
    table.updater = *std::move(updater);
    for (std::uint32_t shard = 0; shard < num_shards; ++shard) {
      table.shards.push_back(NewShardStore(entry.spec,
                                           {.table = entry.id,
                                            .shard = shard,
                                            .num_shards = num_shards,
                                            .block_bytes = kTestBlockBytes},
                                           table.updater.get()));
    }
    table.generations.resize(num_shards);
    tables_.push_back(std::move(table));
  }
}

void TestModel::Push(std::uint64_t seed, int pushes) {
  runtime::Random random(seed);
  for (int i = 0; i < pushes; ++i) {
    Table& table = tables_[random.Below(tables_.size())];
    const TableSpec& spec = table.entry.spec;
    const bool dense = spec.kind == TableKind::kDense;
    const std::uint64_t key = random.Below(dense ? proto::NumBlocks(spec, kTestBlockBytes) : kKeys);
    const std::uint32_t shard = dense ? proto::ShardOfBlock(table.entry.id, key, num_shards_)
                                      : proto::ShardOfKey(key, num_shards_);
    const absl::Status applied = table.shards[shard]->Apply(RandomPush(spec, key, &random));
    EXPECT_TRUE(applied.ok()) << applied;
  }
}

ShardContent TestModel::ContentOf(std::uint32_t shard, const std::string& name, std::uint64_t clock,
                                  const std::optional<checkpoint::Base>& base) {
  ShardContent content{.checkpoint = name,
                       .shard = shard,
                       .num_shards = num_shards_,
                       .block_bytes = kTestBlockBytes,
                       .clock = clock,
                       .base = base.has_value() ? base->name : "",
                       .sessions = {{.rank = 2, .incarnation = ~0ull, .admitted_held = shard}},
                       .tables = {}};
  for (Table& table : tables_) {
    std::uint64_t since = 0;
    if (base.has_value()) {
      since = table.generations[shard].at(*checkpoint::CheckpointNumber(base->name));
    }
    StoreSnapshot snapshot = table.shards[shard]->FreezeSince(since);
    table.generations[shard][*checkpoint::CheckpointNumber(name)] = snapshot.generation;
    content.tables.push_back(
        {.id = table.entry.id,
         .spec = table.entry.spec,
         .state_slots = static_cast<std::uint32_t>(table.updater->state_slots()),
         .pieces = std::move(snapshot.pieces)});
  }
  return content;
}

absl::StatusOr<checkpoint::Manifest> TestModel::Save(runtime::FileSystem* files,
                                                     const std::string& directory,
                                                     std::uint64_t number,
                                                     std::optional<checkpoint::Base> base) {
  checkpoint::Manifest manifest{.name = checkpoint::CheckpointName(number),
                                .time = "",
                                .cluster = 1,
                                .clock = 10 * number,
                                .num_shards = num_shards_,
                                .block_bytes = kTestBlockBytes,
                                .base = base,
                                .tables = Tables(),
                                .files = {},
                                .checksum = 0};
  const std::string path = checkpoint::JoinPath(directory, manifest.name);
  LEEWAY_RETURN_IF_ERROR(checkpoint::StartCheckpoint(files, path));
  for (std::uint32_t shard = 0; shard < num_shards_; ++shard) {
    LEEWAY_ASSIGN_OR_RETURN(
        const proto::CheckpointFile file,
        WriteShardFile(files, path, ContentOf(shard, manifest.name, manifest.clock, base)));
    manifest.files.push_back(
        {.name = file.name, .shard = shard, .bytes = file.bytes, .checksum = file.checksum});
  }
  LEEWAY_RETURN_IF_ERROR(checkpoint::FinishCheckpoint(files, path, &manifest));
  return manifest;
}

absl::Status TestModel::Load(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(const auto chain, checkpoint::ReadChain(files, path));
  const std::string directory = checkpoint::SplitPath(path).first;
  for (std::uint32_t from = 0; from < chain.front().num_shards; ++from) {
    LEEWAY_ASSIGN_OR_RETURN(const auto contents,
                            ReadShard(files, directory, chain, from, [](std::uint64_t) {}));
    for (const ShardContent& content : contents) {
      for (std::size_t i = 0; i < content.tables.size(); ++i) {
        for (const FrozenPiece& piece : content.tables[i].pieces) {
          for (auto& store : tables_[i].shards) {
            LEEWAY_RETURN_IF_ERROR(store->LoadElsewhere(piece, content.block_bytes).status());
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::byte> TestModel::Pull(std::size_t index, std::uint64_t key) {
  Table& table = tables_[index];
  const bool dense = table.entry.spec.kind == TableKind::kDense;
  const std::uint32_t shard = dense ? proto::ShardOfBlock(table.entry.id, key, num_shards_)
                                    : proto::ShardOfKey(key, num_shards_);
  PullView pull;
  if (dense) {
    pull.block = key;
    pull.elements = proto::ElementsInBlock(table.entry.spec, kTestBlockBytes, key);
  } else {
    pull.keys = runtime::Buffer::CopyOf(&key, sizeof(key));
  }
  const auto pulled = table.shards[shard]->Pull(pull);
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  const auto bytes = pulled->payload.back().bytes();
  return {bytes.begin(), bytes.end()};
}

std::uint64_t TestModel::Rows(std::size_t table) {
  std::uint64_t rows = 0;
  for (auto& store : tables_[table].shards) {
    for (const FrozenPiece& piece : store->Freeze().pieces) {
      ForEachRow(piece, [&](const FrozenRow&) { ++rows; });
    }
  }
  return rows;
}

std::uint64_t TestModel::Digest() {
  std::uint64_t digest = 0;
  for (Table& table : tables_) {
    std::uint64_t sum = 0;  // of all shards: however many there are
    for (auto& store : table.shards) sum += store->Digest();
    digest = runtime::StableHash(digest ^ sum);
  }
  return digest;
}

}  // namespace leeway::ps
