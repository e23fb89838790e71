#include "checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "checkpoint/checksum.h"
#include "checkpoint/folder.h"
#include "proto/tables/text.h"

namespace leeway::checkpoint {
namespace {

Manifest Example() {
  Manifest manifest{.name = CheckpointName(7),
                    .time = "2026-01-02T03:04:05+00:00",
                    .cluster = 0xfedcba9876543210,
                    .clock = 41,
                    .num_shards = 3,
                    .block_bytes = 1 << 20,
                    .base = Base{.name = CheckpointName(6), .checksum = 0x8000000000000001},
                    .tables = {},
                    .files = {},
                    .checksum = 0};
  TableSpec dense = TableSpec::Dense("a \"table\"/with ümlauts", {3, 5, 7}, DType::kBFloat16);
  dense.updater = {.name = "adam", .parameters = {{"learning_rate", 0.1}, {"beta1", 1.0 / 3}}};
  dense.initializer = Initializer::Normal(0.5, 1e-300, ~0ull);
  dense.aggregate = Aggregate::kMean;
  TableSpec sparse = TableSpec::Sparse("rows", 16, DType::kInt64);
  sparse.consistency = Consistency::Asp();
  sparse.nonfinite = NonFinite::kRefuse;
  TableSpec ragged = TableSpec::Ragged("ragged");
  ragged.consistency = Consistency::Ssp(3);
  manifest.tables = {
      {.id = 1, .spec = dense},
      {.id = 4, .spec = sparse, .combine = Updater::Combine::kLast, .codec_changed = true},
      {.id = 5, .spec = ragged}};
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    manifest.files.push_back(
        {.name = ShardFileName(shard), .shard = shard, .bytes = shard * 10, .checksum = ~0ull});
  }
  return manifest;
}

TEST(ManifestTest, ComesBackAsItWas) {
  Manifest manifest = Example();
  const std::string text = EncodeManifest(&manifest);
  const auto parsed = ParseManifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, manifest);
  manifest.base.reset();
  EXPECT_EQ(*ParseManifest(EncodeManifest(&manifest)), manifest);
}

TEST(ManifestTest, IsJsonForOthers) {
  Manifest manifest = Example();
  const auto json = nlohmann::json::parse(EncodeManifest(&manifest));
  EXPECT_EQ(json["leeway_checkpoint"], 1);
  EXPECT_EQ(json["manifest"]["clock"], 41);
  EXPECT_EQ(json["manifest"]["tables"][0]["updater"]["name"], "adam");
  EXPECT_EQ(json["checksum"], ChecksumText(manifest.checksum));
}

TEST(ManifestTest, AnyBitThatIsNotAsItWasIsFound) {
  Manifest manifest = Example();
  const std::string text = EncodeManifest(&manifest);
  for (std::size_t i = 0; i < text.size() * 8; ++i) {
    std::string flipped = text;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(ParseManifest(flipped).ok()) << "bit " << i;
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseManifest(text.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseManifest(text + "\n").ok());
}

// With a checksum that is right, so that the contents have to speak for themselves.
absl::Status ParseEdited(absl::string_view from, absl::string_view to) {
  Manifest manifest = Example();
  const std::string text = EncodeManifest(&manifest);
  const std::size_t start = text.find("\"manifest\":") + 11;
  const std::string body = text.substr(start, text.size() - start - 2);
  const std::string edited = absl::StrReplaceAll(body, {{from, to}});
  EXPECT_NE(edited, body) << from;
  return ParseManifest(absl::StrCat("{\"leeway_checkpoint\":1,\"checksum\":\"",
                                    ChecksumText(ChecksumOf(edited)), "\",\"manifest\":", edited,
                                    "}\n"))
      .status();
}

TEST(ManifestTest, ImpossibleValuesAreRefused) {
  const std::pair<absl::string_view, absl::string_view> kEdits[] = {
      {"\"clock\":41", "\"clock\":-1"},
      {"\"clock\":41", "\"clock\":\"41\""},
      {"\"clock\":41", "\"clock\":41,\"clock\":42"},
      {"\"clock\":41", "\"clock\":41,\"more\":42"},
      {"\"clock\":41,", ""},
      {"\"clock\":41", "\"clock\":18446744073709551615"},
      {"\"clock\":41", "\"clock\":2305843009213693953"},
      {"2026-01-02T03:04:05+00:00", "\\u001b[2J"},
      {"2026-01-02T03:04:05+00:00", "today\\n"},
      {"2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.000000000000000000000000000000000+00:00 "},
      {"\"bytes\":20", "\"bytes\":18446744073709551615"},
      {"\"bytes\":20", "\"bytes\":72057594037927937"},
      {"ckpt-00000007", "ckpt-18446744073709551615"},
      {"\"id\":1,", "\"id\":0,"},
      {"\"id\":5", "\"id\":4294967295"},
      {"\"name\":\"rows\"", "\"name\":\"ragged\""},
      {"\"num_shards\":3", "\"num_shards\":0"},
      {"\"num_shards\":3", "\"num_shards\":2"},
      {"\"num_shards\":3", "\"num_shards\":4"},
      {"\"num_shards\":3", "\"num_shards\":4294967299"},
      {"\"block_bytes\":1048576", "\"block_bytes\":0"},
      {"ckpt-00000007", "ckpt-7"},
      {"ckpt-00000007", "../../ckpt-00000007"},
      {"ckpt-00000006", "ckpt-00000007"},
      {"ckpt-00000006", "ckpt-00000008"},
      {"shard-00002.safetensors", "../00002.safetensors"},
      {"\"shard\":2", "\"shard\":1"},
      {"\"id\":5", "\"id\":4"},
      {"\"kind\":\"dense\"", "\"kind\":\"fluffy\""},
      {"\"dtype\":\"I64\"", "\"dtype\":\"U64\""},
      {"\"shape\":[3,5,7]", "\"shape\":[3,0,7]"},
      {"\"shape\":[3,5,7]", "\"shape\":[3,5.5,7]"},
      {"\"row_width\":16", "\"row_width\":0"},
      {"xxh3:ffffffffffffffff", "xxh3:FFFFFFFFFFFFFFFF"},
      {"xxh3:ffffffffffffffff", "crc:ffffffffffffffff"},
  };
  for (const auto& [from, to] : kEdits) {
    const absl::Status status = ParseEdited(from, to);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << from << " to " << to << ": " << status;
  }
}

TEST(ManifestTest, NothingInItGetsToATerminal) {
  for (const auto& [from, to] : {std::pair("\"kind\":\"dense\"", "\"kind\":\"\\u001b]0;x\""),
                                 std::pair("\"dtype\":\"I64\"", "\"dtype\":\"\\u009b2J\""),
                                 std::pair("\"clock\":41", "\"\\u001b\":1,\"\\u001b\":2")}) {
    const absl::Status status = ParseEdited(from, to);
    EXPECT_FALSE(status.ok()) << to;
    EXPECT_TRUE(proto::IsClean(status.message(), proto::Lines::kOne)) << to;
  }
}

TEST(ManifestTest, ALaterVersionIsToldFromGarbage) {
  Manifest manifest = Example();
  const std::string text = absl::StrReplaceAll(
      EncodeManifest(&manifest), {{"\"leeway_checkpoint\":1", "\"leeway_checkpoint\":2"}});
  EXPECT_EQ(ParseManifest(text).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace leeway::checkpoint
