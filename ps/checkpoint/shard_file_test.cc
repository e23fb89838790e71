#include "ps/checkpoint/shard_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/piece_tensors.h"
#include "ps/checkpoint/testing/test_model.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::ps {
namespace {

using checkpoint::Base;
using Json = nlohmann::json;

Base BaseOf(const checkpoint::Manifest& manifest) {
  return {.name = manifest.name, .checksum = manifest.checksum};
}

class ShardFileTest : public ::testing::Test {
 protected:
  Base Save(TestModel* model, std::uint64_t number, std::optional<Base> base = std::nullopt) {
    checkpoint::RemoveCheckpoint(&files_, SavedPath(number)).IgnoreError();  // one of before
    const auto manifest = model->Save(&files_, kSavedFolder, number, std::move(base));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return BaseOf(*manifest);
  }

  runtime::SimFileSystem files_{1};
};

TEST_F(ShardFileTest, ALoadedShardEqualsTheSavedOneAndGoesOnAlike) {
  for (const std::uint32_t num_shards : {3u, 2u, 1u, 7u}) {
    TestModel model(3), loaded(num_shards);
    model.Push(1, 2000);
    Save(&model, 1);
    const absl::Status status = loaded.Load(&files_, SavedPath(1));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(loaded.Digest(), model.Digest());
    model.Push(2, 500);
    loaded.Push(2, 500);
    EXPECT_EQ(loaded.Digest(), model.Digest()) << num_shards;
  }
}

TEST_F(ShardFileTest, PushesMeanwhileAreNotInIt) {
  TestModel model(2), loaded(2), same(2);
  model.Push(1, 500);
  same.Push(1, 500);
  Save(&model, 1);
  model.Push(2, 500);
  ASSERT_TRUE(loaded.Load(&files_, SavedPath(1)).ok());
  EXPECT_EQ(loaded.Digest(), same.Digest());
  EXPECT_NE(loaded.Digest(), model.Digest());
}

TEST_F(ShardFileTest, IncrementalOnesAddUp) {
  TestModel model(3);
  model.Push(1, 3000);
  const Base first = Save(&model, 1);
  model.Push(2, 5);
  const Base second = Save(&model, 2, first);
  model.Push(3, 5);
  Save(&model, 3, second);
  TestModel loaded(2);
  const absl::Status status = loaded.Load(&files_, SavedPath(3));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loaded.Digest(), model.Digest());
  // And they are small.
  const auto full = checkpoint::ReadManifest(&files_, SavedPath(1));
  const auto added = checkpoint::ReadManifest(&files_, SavedPath(3));
  EXPECT_LT(2 * added->bytes(), full->bytes());
}

TEST_F(ShardFileTest, SessionsAndClockComeBack) {
  TestModel model(3);
  Save(&model, 4);
  const auto manifest = checkpoint::ReadManifest(&files_, SavedPath(4));
  const auto content = ReadShardFile(&files_, SavedPath(4), *manifest, 2, [](std::uint64_t) {});
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->clock, 40u);
  ASSERT_EQ(content->sessions.size(), 1u);
  EXPECT_EQ(content->sessions[0],
            (proto::ClientSession{.rank = 2, .incarnation = ~0ull, .admitted_held = 2}));
}

// As another program would: by the layout's description alone.
TEST_F(ShardFileTest, TensorsAreNamedShapedAndAlignedAsDescribed) {
  TestModel model(1);
  model.Push(1, 3000);
  Save(&model, 1);
  const std::string file =
      *files_.Read(checkpoint::JoinPath(SavedPath(1), "shard-00000.safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const auto header = nlohmann::json::parse(file.substr(8, length));
  const std::map<std::string, std::size_t> sizes = {
      {"F32", 4}, {"F64", 8}, {"BF16", 2}, {"U64", 8}, {"U32", 4}};
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    EXPECT_EQ(tensor["data_offsets"][0].get<std::size_t>() % sizes.at(tensor["dtype"]), 0u) << name;
  }
  // 9000 elements of 2 bytes: blocks of 2048.
  const Json& block = header["table/w/block/1/block/4/values"];
  EXPECT_EQ(block["dtype"], "BF16");
  EXPECT_EQ(block["shape"], Json({808}));
  EXPECT_EQ(header["table/w/block/1/block/4/state"]["shape"], Json({2, 808}));
  EXPECT_EQ(header["table/w/block/1/block/4/state"]["dtype"], "F32");
  EXPECT_EQ(header["table/w/block/1/block/4/steps"]["shape"], Json({1}));
  const std::size_t rows = header["table/émb \"1\"/rows/0/keys"]["shape"][0];
  EXPECT_GT(rows, 200u);
  EXPECT_EQ(header["table/émb \"1\"/rows/0/values"]["shape"], Json({rows, 5}));
  EXPECT_EQ(header["table/émb \"1\"/rows/0/state"]["shape"], Json({rows, 1, 5}));
  EXPECT_EQ(header["table/ragged/rows/0/widths"]["dtype"], "U32");
}

// A block whose replies are encoded says of which version its feedback slot is; files of before
// that was said do not.
TEST(PieceTensors, KeepTheVersionOfABlockThatHasOne) {
  const TableSpec spec = TableSpec::Dense("w", {2});
  const std::vector<float> values = {1, 2};
  const std::uint64_t steps = 7;
  FrozenPiece piece{.block = 3, .elements = 2, .state_slots = 1};
  piece.values = piece.state = runtime::Buffer::CopyOf(values.data(), 8);
  piece.steps = runtime::Buffer::CopyOf(&steps, sizeof(steps));
  for (const std::uint64_t version : {0u, 5u, 8u}) {
    piece.version = version;
    std::map<std::string, PieceTensor> parts;
    for (PieceTensor& tensor : ToTensors(spec, 0, piece)) {
      tensor.info.end = tensor.bytes.size();
      parts[ParseTensorName(tensor.info.name)->part] = std::move(tensor);
    }
    EXPECT_EQ(parts.count("version"), version == 0 ? 0u : 1u);
    const auto read = ToPiece(spec, 1, 3, parts);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->version, version);
    if (version == 0) continue;
    parts["version"].info.shape = {2};
    EXPECT_FALSE(ToPiece(spec, 1, 3, parts).ok());
    parts["version"].info.shape = {1};
    parts["version"].info.type = checkpoint::TensorType::kF64;
    EXPECT_FALSE(ToPiece(spec, 1, 3, parts).ok());
    parts.erase("version");
    parts["other"] = {};
    EXPECT_FALSE(ToPiece(spec, 1, 3, parts).ok());
  }
}

TEST_F(ShardFileTest, NamesOfTensorsComeBack) {
  for (const char* table : {"w", "a/b", "table/x/block/3/values", "/", "rows/0/keys"}) {
    for (const char* where : {"block", "rows"}) {
      const auto name = ParseTensorName(absl::StrCat("table/", table, "/", where, "/12/values"));
      ASSERT_TRUE(name.ok()) << name.status();
      EXPECT_EQ(name->table, table);
      EXPECT_EQ(name->dense, where == std::string("block"));
      EXPECT_EQ(name->index, 12u);
      EXPECT_EQ(name->part, "values");
    }
  }
  for (const char* wrong : {"", "w", "table/w/block/1", "w/block/1/values", "table/w/rows/x/keys",
                            "table/w/rows/01/keys", "table/w/rows/-1/keys", "table/w/row/1/keys"}) {
    EXPECT_FALSE(ParseTensorName(wrong).ok()) << wrong;
  }
}

// The tensors of a piece, by part.
std::map<std::string, PieceTensor> PartsOf(const TableSpec& spec, const FrozenPiece& piece) {
  std::map<std::string, PieceTensor> parts;
  for (PieceTensor& tensor : ToTensors(spec, 3, piece)) {
    const auto name = ParseTensorName(tensor.info.name);
    EXPECT_TRUE(name.ok()) << name.status();
    EXPECT_TRUE(name->collected);
    EXPECT_EQ(name->dense, spec.kind == TableKind::kDense);
    EXPECT_EQ(name->index, spec.kind == TableKind::kDense ? piece.block : 3);
    tensor.info.end = tensor.bytes.size();
    parts[name->part] = std::move(tensor);
  }
  return parts;
}

TEST(CollectedPiecesTest, ComeBackAsTheyWere) {
  TableSpec spec = TableSpec::Dense("w", {100}, DType::kFloat16);
  spec.consistency = Consistency::FedBuff(4);
  const std::vector<float> values = {1, 2, 3};
  const std::uint64_t steps = 2;
  const FrozenPiece piece{.kind = TableKind::kDense,
                          .dtype = DType::kFloat32,
                          .block = 7,
                          .elements = 3,
                          .values = runtime::Buffer::CopyOf(values.data(), 12),
                          .steps = runtime::Buffer::CopyOf(&steps, 8),
                          .collected = 2,
                          .learning_rate = 0.25};
  const auto parts = PartsOf(spec, piece);
  const auto back = ToCollectedPiece(spec, 7, parts);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->collected, 2u);
  EXPECT_EQ(back->block, 7u);
  EXPECT_EQ(back->learning_rate, 0.25);
  EXPECT_EQ(Digest({&*back, 1}), Digest({&piece, 1}));

  // There may be more of a clock that is open than any policy counts to.
  auto many = parts;
  for (const std::uint64_t pushes : {std::uint64_t{1} << 21, std::uint64_t{1} << 32}) {
    many["pushes"].bytes = runtime::Buffer::CopyOf(&pushes, 8);
    const auto read = ToCollectedPiece(spec, 7, many);
    EXPECT_EQ(read.ok(), pushes < std::uint64_t{1} << 32) << read.status();
    EXPECT_EQ(read.ok() ? read->collected : 0, read.ok() ? pushes : 0);
  }

  auto of_the_table = parts;
  of_the_table.erase("rate");
  EXPECT_TRUE(std::isnan(ToCollectedPiece(spec, 7, of_the_table)->learning_rate));
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) {
    auto wrong = parts;
    wrong["rate"].bytes = runtime::Buffer::CopyOf(&rate, 8);
    EXPECT_FALSE(ToCollectedPiece(spec, 7, wrong).ok()) << rate;
  }
  auto no_float = parts;
  no_float["rate"].info.type = checkpoint::TensorType::kU64;
  EXPECT_FALSE(ToCollectedPiece(spec, 7, no_float).ok());

  TableSpec other = spec;
  other.consistency = Consistency::Asp();
  EXPECT_FALSE(ToCollectedPiece(other, 7, parts).ok());
  auto none = parts;
  const std::uint64_t zero = 0;
  none["pushes"].bytes = runtime::Buffer::CopyOf(&zero, 8);
  EXPECT_FALSE(ToCollectedPiece(spec, 7, none).ok());
  none.erase("pushes");
  EXPECT_FALSE(ToCollectedPiece(spec, 7, none).ok());
}

}  // namespace
}  // namespace leeway::ps
