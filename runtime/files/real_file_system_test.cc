// Tests of the real file system with names that are neither files nor folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/files/file_system.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::runtime {
namespace {

using ::testing::HasSubstr;

class RealFileSystemTest : public ::testing::Test {
 protected:
  RealFileSystemTest() {
    root_ = temp_folder_.path();
    EXPECT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
    MakeSocket(At("socket"));
    std::ofstream(At("file")) << "contents";
    std::filesystem::create_symlink("file", At("link"));
    std::filesystem::create_symlink("nowhere", At("dangling"));
  }
  ~RealFileSystemTest() override { ::close(socket_); }

  void MakeSocket(const std::string& path) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void ExpectNoFile(const absl::Status& error, const std::string& path, const std::string& what) {
    EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr(path));
    EXPECT_THAT(std::string(error.message()), HasSubstr(" is " + what + ", not a file"));
  }

  FileSystem* const files_ = RealFileSystem();
  const runtime::TempFolder temp_folder_;
  std::string root_;
  int socket_ = -1;
};

// The pipe has no process at its other end, so opening it as a file would block for ever.
TEST_F(RealFileSystemTest, DevicesAndPipesAreNeverOpened) {
  const std::pair<std::string, std::string> others[] = {{At("pipe"), "a pipe"},
                                                        {At("socket"), "a socket"},
                                                        {"/dev/null", "a device"},
                                                        {"/dev/zero", "a device"},
                                                        {root_, "a folder"}};
  for (const auto& [path, what] : others) {
    ExpectNoFile(files_->Read(path).status(), path, what);
    ExpectNoFile(files_->OpenToRead(path).status(), path, what);
    ExpectNoFile(files_->Create(path).status(), path, what);
    ExpectNoFile(files_->CreateLarge(path).status(), path, what);
    ExpectNoFile(files_->OpenForAppend(path).status(), path, what);
    ExpectNoFile(files_->Lock(path).status(), path, what);
    EXPECT_FALSE(files_->SyncDirectory(path).ok() && path != root_);
    EXPECT_FALSE(files_->List(path).ok() && path != root_);
  }
}

TEST_F(RealFileSystemTest, NothingButAFileIsReplaced) {
  std::filesystem::create_directory(At("folder"));
  for (const auto& [name, what] : {std::pair{"pipe", "a pipe"},
                                   {"socket", "a socket"},
                                   {"link", "a symbolic link"},
                                   {"dangling", "a symbolic link"},
                                   {"folder", "a folder"}}) {
    ExpectNoFile(files_->Rename(At("file"), At(name)), At(name), what);
    ExpectNoFile(files_->Rename(At(name), At("other")), At(name), what);
    ExpectNoFile(WriteFileAtomically(files_, At(name), "x"), At(name), what);
  }
  EXPECT_EQ(*files_->Read(At("file")), "contents");
  EXPECT_TRUE(files_->Rename(At("file"), At("other")).ok());
}

// A file system that does not report its free space is not a full one.
TEST_F(RealFileSystemTest, WhereNobodyCountsThereIsRoom) {
  EXPECT_GT(*files_->BytesFree("/proc"), 1ull << 60);
}

TEST_F(RealFileSystemTest, LinksAreReadButNotTakenForFiles) {
  EXPECT_EQ(*files_->Read(At("link")), "contents");
  for (const char* name : {"link", "dangling", "pipe", "socket"}) {
    EXPECT_EQ(*files_->KindOf(At(name)), FileKind::kOther) << name;
  }
}

// A process that opens the file just before its holder removes it must not get a lock on a file
// that no other process can find.
TEST_F(RealFileSystemTest, ALockWhoseHolderRemovesItsFileIsForOneAllTheSame) {
  constexpr int kTurns = 3000;
  std::atomic<int> holders = 0, together = 0;
  const auto compete = [&] {
    for (int turns = 0; turns < kTurns;) {
      auto lock = files_->Lock(At("lock"));
      if (!lock.ok()) continue;
      if (holders.fetch_add(1) != 0) ++together;
      std::this_thread::yield();
      holders.fetch_sub(1);
      ASSERT_TRUE(files_->Remove(At("lock")).ok());
      ++turns;
    }
  };
  std::thread one(compete), other(compete);
  one.join();
  other.join();
  EXPECT_EQ(together, 0);
  EXPECT_FALSE(files_->Exists(At("lock")));
}

}  // namespace
}  // namespace leeway::runtime
