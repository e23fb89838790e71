#include "ps/checkpoint/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors_reader.h"
#include "ps/checkpoint/testing/test_model.h"
#include "ps/store/frozen_piece.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::ps {
namespace {

using ::testing::ElementsAre;

// What a table's pull says of each key or block, in order.
std::vector<std::byte> ValuesOf(TestModel* model, std::size_t table,
                                const std::vector<std::uint64_t>& keys) {
  std::vector<std::byte> values;
  for (const std::uint64_t key : keys) {
    const std::vector<std::byte> row = model->Pull(table, key);
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override { model_.Push(1, 200); }

  void ReadExport() {
    const auto written = Export(&files_, SavedPath(number_), "model", NoProgress);
    ASSERT_TRUE(written.ok()) << written.status();
    auto reader = checkpoint::SafetensorsReader::Open(&files_, "model");
    ASSERT_TRUE(reader.ok()) << reader.status();
    header_ = (*reader)->header();
    for (const checkpoint::TensorInfo& tensor : header_.tensors) {
      const auto bytes = (*reader)->ReadNext();
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      tensors_[tensor.name] = *bytes;
    }
    EXPECT_EQ(written->checksum, (*reader)->checksum());
  }

  void ExpectTheModel() {
    const auto tables = TestModel::Tables();
    const auto& dense = header_.tensors[0];
    EXPECT_EQ(dense.name, tables[0].spec.name);
    EXPECT_EQ(dense.shape, tables[0].spec.shape);
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t block = 0; block * kTestBlockBytes < dense.bytes(); ++block) {
      blocks.push_back(block);
    }
    // Blocks that were never pushed to have their initial values.
    EXPECT_EQ(absl::StrCat("", tensors_[dense.name].text()), Text(ValuesOf(&model_, 0, blocks)));
    for (const std::size_t table : {1, 2}) {
      const std::string name = tables[table].spec.name;
      const auto keys = tensors_[name + ".keys"].as<std::uint64_t>();
      EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
      EXPECT_EQ(keys.size(), model_.Rows(table));
      EXPECT_EQ(absl::StrCat("", tensors_[name + ".values"].text()),
                Text(ValuesOf(&model_, table, {keys.begin(), keys.end()})));
    }
    EXPECT_EQ(header_.metadata.at("checkpoint"), checkpoint::CheckpointName(number_));
  }
  static std::string Text(const std::vector<std::byte>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  runtime::SimFileSystem files_{1};
  TestModel model_{3};
  std::uint64_t number_ = 1;
  checkpoint::TensorHeader header_;
  std::map<std::string, runtime::Buffer> tensors_;
};

TEST_F(ExportTest, HasTheValuesOfAllTables) {
  ASSERT_TRUE(model_.Save(&files_, kSavedFolder, 1).ok());
  ReadExport();
  ExpectTheModel();
  EXPECT_THAT(*files_.List("."), ElementsAre("model", "saved"));
}

TEST_F(ExportTest, OfAChainTheNewestValues) {
  const auto first = model_.Save(&files_, kSavedFolder, 1);
  ASSERT_TRUE(first.ok());
  model_.Push(2, 50);
  number_ = 2;
  ASSERT_TRUE(model_
                  .Save(&files_, kSavedFolder, 2,
                        checkpoint::Base{.name = first->name, .checksum = first->checksum})
                  .ok());
  ReadExport();
  ExpectTheModel();
}

// Before it has read anything.
TEST_F(ExportTest, ReplacesNothingButAFile) {
  runtime::FileSystem* const files = runtime::RealFileSystem();
  const runtime::TempFolder temp_folder;
  const std::string& root = temp_folder.path();
  const std::string saved = checkpoint::JoinPath(root, kSavedFolder);
  ASSERT_TRUE(model_.Save(files, saved, 1).ok());
  const std::string path = checkpoint::JoinPath(saved, checkpoint::CheckpointName(1));
  std::filesystem::create_symlink("elsewhere", root + "/link");
  std::filesystem::create_symlink("elsewhere", root + "/half.unfinished");
  std::filesystem::create_directory(root + "/folder");
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  for (const std::string name : {"link", "folder", "pipe", "half", "missing/model"}) {
    const std::string to = checkpoint::JoinPath(root, name);
    const absl::Status refused = Export(files, path, to, [](std::uint64_t, std::uint64_t) {
                                   ADD_FAILURE() << "it reads";
                                 }).status();
    EXPECT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.message().find(name == "missing/model" ? root + "/missing" : to),
              absl::string_view::npos)
        << refused;
  }
  EXPECT_FALSE(Export(files, path, "/dev/null", NoProgress).ok());
  EXPECT_FALSE(files->Exists(root + "/elsewhere"));
  EXPECT_TRUE(Export(files, path, root + "/model", NoProgress).ok());
  EXPECT_TRUE(Export(files, path, root + "/model", NoProgress).ok());
}

TEST_F(ExportTest, ReplacesNeitherACheckpointNorWhatIsUnfinished) {
  ASSERT_TRUE(model_.Save(&files_, kSavedFolder, 1).ok());
  const std::string path = checkpoint::JoinPath(kSavedFolder, checkpoint::CheckpointName(1));
  for (const char* name : {"manifest.json", "shard-00000.safetensors", "model"}) {
    const std::string to = checkpoint::JoinPath(path, name);
    EXPECT_THAT(std::string(Export(&files_, path, to, NoProgress).status().message()),
                testing::HasSubstr(to));
  }
  ASSERT_TRUE(runtime::WriteFileAtomically(&files_, "x.unfinished", "mine").ok());
  EXPECT_THAT(std::string(Export(&files_, path, "x", NoProgress).status().message()),
              testing::HasSubstr("x.unfinished"));
  EXPECT_EQ(*files_.Read("x.unfinished"), "mine");
  EXPECT_TRUE(VerifyCheckpoint(&files_, path, NoProgress).ok());
}

TEST_F(ExportTest, LeavesNothingWhereItFails) {
  ASSERT_TRUE(model_.Save(&files_, kSavedFolder, 1).ok());
  files_.SetFaults({.bytes_max = files_.bytes_used() + 1000});
  EXPECT_FALSE(Export(&files_, SavedPath(1), "model", NoProgress).ok());
  EXPECT_THAT(*files_.List("."), ElementsAre("saved"));
}

}  // namespace
}  // namespace leeway::ps
