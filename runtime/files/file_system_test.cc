// Tests of every FileSystem, real and simulated.
#include "runtime/files/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/files/direct_file.h"
#include "runtime/sim/sim_file_system.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileSystemTest : public ::testing::TestWithParam<bool> {
 protected:
  FileSystemTest() {
    if (GetParam()) {
      simulated_ = std::make_unique<SimFileSystem>(1);
      files_ = simulated_.get();
      root_ = "/data";
      EXPECT_TRUE(files_->CreateDirectories(root_).ok());
    } else {
      files_ = RealFileSystem();
      root_ = temp_folder_.path();
    }
  }

  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, absl::string_view contents) {
    auto file = files_->Create(At(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(contents).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE((*file)->Close().ok());
  }
  std::string Contents(const std::string& name) {
    const auto contents = files_->Read(At(name));
    return contents.ok() ? *contents : contents.status().ToString();
  }

  std::unique_ptr<SimFileSystem> simulated_;
  FileSystem* files_ = nullptr;
  const runtime::TempFolder temp_folder_;
  std::string root_;
};

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Sim" : "Real"; });

TEST_P(FileSystemTest, ALockIsForOneUntilItLetsGo) {
  auto first = files_->Lock(At("lock"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(files_->Lock(At("lock")).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(files_->Lock(At("other")).ok());
  first->reset();
  EXPECT_TRUE(files_->Lock(At("lock")).ok());
  EXPECT_EQ(files_->Lock(At("no/folder")).status().code(), absl::StatusCode::kNotFound);
}

// Appends and file ends at sizes that are no multiples of the piece that goes to the disk at once.
TEST_P(FileSystemTest, LargeFilesHaveWhatWasAppended) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097},
        kDirectFileBytesAtOnce - 1, kDirectFileBytesAtOnce, 2 * kDirectFileBytesAtOnce + 5}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i >> 7);
    auto file = files_->CreateLarge(At("large"));
    ASSERT_TRUE(file.ok()) << file.status();
    for (const std::size_t end : {size / 3, size / 2, size / 2 + size / 7, size}) {
      const std::size_t begin = end == size / 3   ? 0
                                : end == size / 2 ? size / 3
                                : end == size     ? size / 2 + size / 7
                                                  : size / 2;
      ASSERT_TRUE((*file)->Append(absl::string_view(bytes).substr(begin, end - begin)).ok());
      if (end == size / 3) continue;  // two pieces without a sync in between
      ASSERT_TRUE((*file)->Sync().ok());
      ASSERT_EQ(Contents("large"), bytes.substr(0, end)) << size;
    }
    ASSERT_TRUE((*file)->Append("the end").ok());
    ASSERT_TRUE((*file)->Close().ok());
    ASSERT_EQ(Contents("large"), bytes + "the end") << size;
  }
  EXPECT_EQ(files_->CreateLarge(At("no/folder")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(FileSystemTest, WrittenBytesAreRead) {
  const std::string bytes("a\0b\xff\n", 5);
  Write("file", bytes);
  EXPECT_EQ(Contents("file"), bytes);
  Write("empty", "");
  EXPECT_EQ(Contents("empty"), "");
  const std::string large(3'000'000, 'x');
  Write("large", large);
  EXPECT_EQ(Contents("large"), large);
}

TEST_P(FileSystemTest, PartsAreReadFromAnywhere) {
  Write("f", "0123456789");
  const auto file = files_->OpenToRead(At("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10u);
  std::string part(4, ' ');
  const auto bytes = std::as_writable_bytes(std::span(part));
  EXPECT_TRUE((*file)->ReadAt(3, bytes).ok());
  EXPECT_EQ(part, "3456");
  EXPECT_TRUE((*file)->ReadAt(6, bytes).ok());
  EXPECT_TRUE((*file)->ReadAt(10, {}).ok());
  EXPECT_EQ((*file)->ReadAt(7, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*file)->ReadAt(1000, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(files_->OpenToRead(At("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(files_->OpenToRead(At(".")).ok());
}

TEST_P(FileSystemTest, CreateEmptiesAndAppendAdds) {
  Write("file", "old contents");
  Write("file", "new");
  EXPECT_EQ(Contents("file"), "new");
  auto file = files_->OpenForAppend(At("file"));
  ASSERT_TRUE(file.ok() && (*file)->Append("er").ok() && (*file)->Append("!").ok());
  EXPECT_EQ(Contents("file"), "newer!") << "without Close";
  ASSERT_TRUE(files_->OpenForAppend(At("other")).ok());
  EXPECT_EQ(Contents("other"), "");
}

TEST_P(FileSystemTest, AClosedFileTakesNothing) {
  auto file = files_->Create(At("file"));
  ASSERT_TRUE(file.ok() && (*file)->Close().ok());
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_FALSE((*file)->Append("x").ok());
  EXPECT_FALSE((*file)->Sync().ok());
}

TEST_P(FileSystemTest, RenameReplaces) {
  Write("from", "new");
  Write("to", "old");
  ASSERT_TRUE(files_->Rename(At("from"), At("to")).ok());
  EXPECT_EQ(Contents("to"), "new");
  EXPECT_FALSE(files_->Exists(At("from")));
  EXPECT_TRUE(files_->Rename(At("to"), At("to")).ok());
  EXPECT_EQ(Contents("to"), "new");
}

TEST_P(FileSystemTest, ListIsSortedAndHasFolders) {
  Write("b", "");
  Write("a", "");
  ASSERT_TRUE(files_->CreateDirectories(At("c/d")).ok());
  Write("c/x", "");
  EXPECT_THAT(*files_->List(root_), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*files_->List(At("c")), ElementsAre("d", "x"));
  EXPECT_THAT(*files_->List(At("c/d")), IsEmpty());
  EXPECT_THAT(*files_->List(At("c/")), ElementsAre("d", "x"));
}

TEST_P(FileSystemTest, FoldersMayExistAlready) {
  EXPECT_TRUE(files_->CreateDirectories(At("a/b")).ok());
  EXPECT_TRUE(files_->CreateDirectories(At("a/b")).ok());
  EXPECT_TRUE(files_->Exists(At("a")));
  EXPECT_TRUE(files_->SyncDirectory(At("a/b")).ok());
}

TEST_P(FileSystemTest, RemoveTakesFilesAndEmptyFolders) {
  ASSERT_TRUE(files_->CreateDirectories(At("folder")).ok());
  Write("folder/file", "x");
  EXPECT_EQ(files_->Remove(At("folder")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(files_->Remove(At("folder/file")).ok());
  EXPECT_FALSE(files_->Exists(At("folder/file")));
  EXPECT_TRUE(files_->Remove(At("folder")).ok());
  EXPECT_FALSE(files_->Exists(At("folder")));
}

TEST_P(FileSystemTest, ErrorsNameThePath) {
  const std::string missing = At("missing");
  const std::string inside = At("missing/file");
  const absl::Status errors[] = {
      files_->Read(missing).status(),
      files_->Create(inside).status(),
      files_->OpenForAppend(inside).status(),
      files_->Rename(missing, At("to")),
      files_->Remove(missing),
      files_->List(missing).status(),
      files_->SyncDirectory(missing),
      WriteFileAtomically(files_, inside, "x"),
  };
  for (const absl::Status& error : errors) {
    EXPECT_EQ(error.code(), absl::StatusCode::kNotFound) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr("missing"));
    EXPECT_THAT(std::string(error.message()), HasSubstr("No such file"));
  }
}

TEST_P(FileSystemTest, FilesAndFoldersAreNotMistakenForEachOther) {
  Write("file", "x");
  ASSERT_TRUE(files_->CreateDirectories(At("folder")).ok());
  EXPECT_FALSE(files_->CreateDirectories(At("file/below")).ok());
  EXPECT_FALSE(files_->CreateDirectories(At("file")).ok());
  EXPECT_FALSE(files_->Create(At("folder")).ok());
  EXPECT_FALSE(files_->Read(At("folder")).ok());
  EXPECT_FALSE(files_->List(At("file")).ok());
  EXPECT_FALSE(files_->Rename(At("folder"), At("other")).ok());
  EXPECT_FALSE(files_->Rename(At("file"), At("folder")).ok());
  EXPECT_EQ(Contents("file"), "x");
}

TEST_P(FileSystemTest, KindsAreToldApart) {
  Write("file", "x");
  ASSERT_TRUE(files_->CreateDirectories(At("folder")).ok());
  EXPECT_EQ(*files_->KindOf(At("file")), FileKind::kFile);
  EXPECT_EQ(*files_->KindOf(At("folder")), FileKind::kFolder);
  EXPECT_EQ(files_->KindOf(At("missing")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(FileSystemTest, ErrorsSayWhatStandsInAFilesPlace) {
  Write("file", "x");
  ASSERT_TRUE(files_->CreateDirectories(At("folder")).ok());
  const absl::Status errors[] = {
      files_->Read(At("folder")).status(),          files_->OpenToRead(At("folder")).status(),
      files_->Create(At("folder")).status(),        files_->CreateLarge(At("folder")).status(),
      files_->OpenForAppend(At("folder")).status(), files_->Rename(At("file"), At("folder")),
      files_->Rename(At("folder"), At("other")),
  };
  for (const absl::Status& error : errors) {
    EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr("folder"));
    EXPECT_THAT(std::string(error.message()), HasSubstr("is a folder, not a file"));
  }
}

TEST_P(FileSystemTest, AFolderSaysHowMuchFits) {
  EXPECT_GT(*files_->BytesFree(root_), 0u);
  EXPECT_FALSE(files_->BytesFree(At("missing")).ok());
  if (simulated_ == nullptr) return;
  Write("file", "12345");
  simulated_->SetFaults({.bytes_max = 12});
  EXPECT_EQ(*files_->BytesFree(root_), 7u);
}

TEST_P(FileSystemTest, AFileIsReplacedAtomically) {
  ASSERT_TRUE(WriteFileAtomically(files_, At("manifest"), "one").ok());
  EXPECT_EQ(Contents("manifest"), "one");
  ASSERT_TRUE(WriteFileAtomically(files_, At("manifest"), "two").ok());
  EXPECT_EQ(Contents("manifest"), "two");
  EXPECT_THAT(*files_->List(root_), ElementsAre("manifest"));
}

}  // namespace
}  // namespace leeway::runtime
