// Checkpoints that somebody has made up: every checksum and size is right, so that the contents
// have to be looked at. Nothing crashes, and what verify takes, export and a restoring server take
// too.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "checkpoint/checksum.h"
#include "ps/checkpoint/export.h"
#include "ps/checkpoint/testing/test_model.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "ps/store/factory/new_shard_store.h"
#include "runtime/memory/sanitized.h"
#include "runtime/sim/sim_file_system.h"

namespace leeway::ps {
namespace {

using checkpoint::JoinPath;
using Json = nlohmann::json;

constexpr std::uint32_t kShards = 2;
constexpr std::uint64_t kRoom = 16 << 20;  // on the disk, for what is exported

// Changes JSON here and there, mostly into something that could almost be.
class Forger {
 public:
  explicit Forger(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }

  void Change(Json* json) {
    for (std::uint64_t changes = 1 + Below(2); changes > 0; --changes) {
      const Json flat = json->flatten();
      const std::string path = KeyOf(flat);
      const Json::json_pointer place(path);
      Json& leaf = (*json)[place];
      if (Below(6) == 0) {
        leaf = flat[KeyOf(flat)];  // what stands elsewhere
      } else if (leaf.is_number()) {
        leaf = Number(leaf);
      } else if (leaf.is_string()) {
        leaf = Text(leaf.get<std::string>());
      } else {
        leaf = Json();
      }
      if (Below(8) == 0) ChangeParent(&(*json)[place.parent_pointer()], place.back());
    }
  }

  // Eight bytes anywhere, as a key, steps or widths would be.
  void ChangeBytes(std::string* bytes) {
    const std::uint64_t value = Extreme();
    const std::size_t at = Below(bytes->size() / 8) * 8;
    std::memcpy(bytes->data() + at, &value, sizeof(value));
  }

 private:
  std::string KeyOf(const Json& flat) { return std::next(flat.begin(), Below(flat.size())).key(); }

  std::uint64_t Extreme() {
    constexpr std::uint64_t kNumbers[] = {0,          1,          2,          3,
                                          16,         4096,       1ull << 24, (1ull << 31) + 1,
                                          ~0u,        1ull << 32, 1ull << 40, 1ull << 48,
                                          1ull << 61, ~0ull >> 1, ~0ull};
    return kNumbers[Below(std::size(kNumbers))];
  }

  Json Number(const Json& before) {
    if (!before.is_number_unsigned() || Below(8) == 0) return Json(Below(2) == 0 ? -1.5 : 1e300);
    const auto number = before.get<std::uint64_t>();
    const std::uint64_t kNear[] = {number + 1, number - 1, number * 2, number / 2, Extreme()};
    return kNear[Below(std::size(kNear))];
  }

  Json Text(const std::string& before) {
    const std::string kTexts[] = {
        "",       "F32",     "F64",  "I64",     "dense",         "sparse",
        "ragged", "adam",    "sgd",  "assign",  "ckpt-00000001", "\x1b[2J",
        "sum",    "uniform", "last", "nowhere", before + "x"};
    return kTexts[Below(std::size(kTexts))];
  }

  void ChangeParent(Json* parent, const std::string& member) {
    if (parent->is_object()) {
      parent->erase(member);
    } else if (parent->is_array() && !parent->empty()) {
      if (Below(2) == 0) {
        parent->push_back(parent->front());
      } else {
        parent->erase(parent->size() - 1);
      }
    }
  }

  runtime::Random random_;
};

class ForgedManifestTest : public ::testing::Test {
 protected:
  ForgedManifestTest() {
    TestModel model(kShards);
    model.Push(1, 60);
    const checkpoint::Manifest first = *model.Save(&files_, kSavedFolder, 1);
    model.Push(2, 20);
    const checkpoint::Base base{.name = first.name, .checksum = first.checksum};
    EXPECT_TRUE(model.Save(&files_, kSavedFolder, 2, base).ok());
    for (const std::uint64_t number : {1, 2}) {
      manifests_[number] = Json::parse(*files_.Read(ManifestPath(number)))["manifest"];
      for (std::uint32_t shard = 0; shard < kShards; ++shard) {
        shards_[number][shard] = *files_.Read(ShardPath(number, shard));
      }
    }
    files_.SetFaults({.bytes_max = files_.bytes_used() + kRoom});
  }

  static std::string ManifestPath(std::uint64_t number) {
    return JoinPath(SavedPath(number), checkpoint::kManifestName);
  }
  static std::string ShardPath(std::uint64_t number, std::uint32_t shard) {
    return JoinPath(SavedPath(number), checkpoint::ShardFileName(shard));
  }
  void Write(const std::string& path, absl::string_view contents) {
    ASSERT_TRUE((*files_.Create(path))->Append(contents).ok());
  }
  // Returns its checksum.
  std::string WriteManifest(std::uint64_t number, const Json& manifest) {
    const std::string body = manifest.dump();
    const std::string checksum = checkpoint::ChecksumText(checkpoint::ChecksumOf(body));
    Write(ManifestPath(number), absl::StrCat("{\"leeway_checkpoint\":1,\"checksum\":\"", checksum,
                                             "\",\"manifest\":", body, "}\n"));
    return checksum;
  }
  // Both, the second with the first's checksum.
  void WriteManifests(std::map<std::uint64_t, Json> manifests) {
    const std::string checksum = WriteManifest(1, manifests[1]);
    if (manifests[2]["base"].is_object()) manifests[2]["base"]["checksum"] = checksum;
    WriteManifest(2, manifests[2]);
  }

  // A file with a header that is not the one it had.
  static std::string WithForgedHeader(const std::string& file, Forger* forger) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    Json header = Json::parse(file.substr(8, length));
    Json& metadata = header["__metadata__"]["leeway"];
    if (forger->Below(2) == 0) {
      Json inner = Json::parse(metadata.get<std::string>());
      forger->Change(&inner);
      metadata = inner.dump();
    } else {
      forger->Change(&header);
    }
    const std::string text = header.dump();
    const std::uint64_t forged = text.size();
    return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&forged), 8), text,
                        file.substr(8 + length));
  }

  void Forge(Forger* forger) {
    auto manifests = manifests_;
    auto shards = shards_;
    const std::uint64_t number = 1 + forger->Below(2);
    std::string& file = shards[number][forger->Below(kShards)];
    switch (forger->Below(5)) {
      case 0:
        file = WithForgedHeader(file, forger);
        break;
      case 1:
        forger->ChangeBytes(&file);
        break;
      case 2:
        file.resize(forger->Below(2) == 0 ? forger->Below(file.size()) : file.size() + 8);
        break;
      default:
        forger->Change(&manifests[number]);
    }
    for (auto& [one, contents] : shards) {
      for (std::uint32_t shard = 0; shard < kShards; ++shard) {
        Write(ShardPath(one, shard), contents[shard]);
        if (contents[shard] == shards_[one][shard]) continue;
        Json& entry = manifests[one]["files"][shard];
        entry["bytes"] = contents[shard].size();
        entry["checksum"] = checkpoint::ChecksumText(checkpoint::ChecksumOf(contents[shard]));
      }
    }
    WriteManifests(std::move(manifests));
  }

  absl::Status VerifyIt() { return VerifyCheckpoint(&files_, SavedPath(2), NoProgress).status(); }
  absl::Status ExportIt() {
    const absl::Status exported = Export(&files_, SavedPath(2), "model", NoProgress).status();
    if (exported.ok()) {
      EXPECT_TRUE(files_.Remove("model").ok());
    }
    return exported;
  }
  // As servers do: tables as the manifest has them, which take all that there is.
  absl::Status RestoreIt() {
    const auto chain = ReadModelChain(&files_, SavedPath(2));
    if (!chain.ok()) return chain.status();
    const checkpoint::Manifest& newest = chain->front();
    absl::Status status;
    for (std::uint32_t from = 0; from < newest.num_shards; ++from) {
      const auto contents = ReadShard(&files_, kSavedFolder, *chain, from, [](std::uint64_t) {});
      if (!contents.ok()) return contents.status();
      for (const ShardContent& content : *contents) {
        for (const ShardContent::Table& table : content.tables) {
          const auto updater = MakeUpdater(table.spec);
          if (absl::IsNotFound(updater.status())) continue;  // of a plugin, for all we know
          if (!updater.ok()) return updater.status();
          const auto store = NewShardStore(table.spec,
                                           {.table = table.id,
                                            .shard = from,
                                            .num_shards = newest.num_shards,
                                            .block_bytes = newest.block_bytes},
                                           updater->get());
          for (const FrozenPiece& piece : table.pieces) {
            status.Update(store->LoadElsewhere(piece, content.block_bytes).status());
          }
        }
      }
    }
    return status;
  }

  runtime::SimFileSystem files_{1};
  std::map<std::uint64_t, Json> manifests_;                               // by number
  std::map<std::uint64_t, std::map<std::uint32_t, std::string>> shards_;  // by number, shard
};

constexpr std::uint64_t kForgeries = runtime::kSanitized ? 300 : 1500;

TEST_F(ForgedManifestTest, NothingCrashesAndAllAgree) {
  std::uint64_t taken = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < kForgeries; ++seed) {
    Forger forger(seed);
    Forge(&forger);
    const absl::Status verified = VerifyIt(), exported = ExportIt(), restored = RestoreIt();
    if (!verified.ok()) {
      ++refused;
      EXPECT_NE(verified.message().find(kSavedFolder), absl::string_view::npos)
          << "seed " << seed << ": " << verified;
      continue;
    }
    ++taken;
    // A model may be larger than the disk has room for.
    EXPECT_TRUE(exported.ok() || absl::IsResourceExhausted(exported))
        << "seed " << seed << ": " << exported;
    EXPECT_TRUE(restored.ok()) << "seed " << seed << ": " << restored;
  }
  EXPECT_GT(taken, kForgeries / 30);
  EXPECT_GT(refused, kForgeries / 3);
}

// What the first checkpoint says of its tables is not what the second one says.
TEST_F(ForgedManifestTest, TablesThatDifferAlongTheChain) {
  const auto with = [this](const char* pointer, const Json& value) {
    auto manifests = manifests_;
    manifests[2][Json::json_pointer(pointer)] = value;
    WriteManifests(manifests);
    const absl::Status verified = VerifyIt();
    EXPECT_EQ(ExportIt(), verified) << pointer;
    EXPECT_EQ(RestoreIt(), verified) << pointer;
    return verified;
  };
  EXPECT_TRUE(with("/clock", 21).code() == absl::StatusCode::kDataLoss);  // its files say 20
  for (const absl::Status& status :
       {with("/tables/0/shape", Json{9, 10}), with("/tables/0/shape", Json{9, 100000}),
        with("/tables/0/dtype", "F64"), with("/tables/1/row_width", 3),
        with("/tables/2/dtype", "F32"), with("/tables/2/id", 5),
        with("/tables/1/updater/name", "sgd"),
        with("/tables", Json::array({manifests_[2]["tables"][0]}))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find("ckpt-00000001/manifest.json"), absl::string_view::npos)
        << status;
  }
}

// Both say the same; but no server could have such a table, or none like it is in the files.
TEST_F(ForgedManifestTest, TablesThatCannotBe) {
  const auto with = [this](const char* pointer, const Json& value) {
    auto manifests = manifests_;
    for (const std::uint64_t number : {1, 2})
      manifests[number][Json::json_pointer(pointer)] = value;
    WriteManifests(manifests);
    const absl::Status verified = VerifyIt();
    EXPECT_EQ(ExportIt().code(), verified.code()) << pointer;
    EXPECT_EQ(RestoreIt().code(), verified.code()) << pointer;
    return verified;
  };
  for (const absl::Status& status :
       {with("/tables/0/updater/name", "sgd"), with("/tables/1/updater/name", "adam"),
        with("/tables/0/updater/parameters", Json{{"no_such", 1}}),
        with("/tables/0/combine", "last"), with("/tables/0/dtype", "F64"),
        with("/tables/0/shape", Json{1ull << 48}), with("/tables/1/row_width", 1 << 24),
        with("/tables/1/name", "ragged"), with("/time", "\x1b[2J")}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

// A table that nobody ever pushed to is as large as its shape says, whatever is in the files.
TEST_F(ForgedManifestTest, ATableLargerThanTheDiskIsNotExported) {
  auto manifests = manifests_;
  Json huge = manifests[2]["tables"][0];
  huge["id"] = 9;
  huge["name"] = "huge";
  huge["shape"] = {1ull << 40, 1ull << 8};
  manifests[2]["tables"].push_back(huge);
  WriteManifests(manifests);
  EXPECT_TRUE(VerifyIt().ok());
  const absl::Status exported = ExportIt();
  EXPECT_EQ(exported.code(), absl::StatusCode::kResourceExhausted) << exported;
  EXPECT_NE(exported.message().find("it takes 56"), absl::string_view::npos) << exported;
}

}  // namespace
}  // namespace leeway::ps
