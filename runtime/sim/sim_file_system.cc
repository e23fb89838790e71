#include "runtime/sim/sim_file_system.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_error.h"

namespace leeway::runtime {
namespace {

constexpr std::size_t kSectorBytes = 512;

absl::Status IsFolder(absl::string_view what, const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": it is a folder, not a file"));
}

// Gives each path one spelling: "./a//b/../c" is "a/c", and the current folder is ".".
std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string ParentOf(const std::string& normal_path) {
  const std::string folder = std::filesystem::path(normal_path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

struct SimFileSystem::Inode {
  std::string contents;
  std::size_t certain = 0;  // the number of bytes that survive a crash
  // A file that Create emptied is durably empty only once it is synced; the contents from before.
  std::string before;

  void Sync() {
    certain = contents.size();
    before.clear();
  }
};

class SimFileSystem::OpenFile final : public WritableFile {
 public:
  OpenFile(SimFileSystem* disk, std::shared_ptr<Inode> inode, const std::string& path)
      : disk_(disk),
        inode_(std::move(inode)),
        path_(path),
        crashes_(disk->crashes_),
        counted_(disk->open_) {
    ++counted_->to_write;
  }
  ~OpenFile() override { (void)Close(); }

  absl::Status Append(absl::string_view data) override {
    LEEWAY_RETURN_IF_ERROR(CheckOpen("write to"));
    return disk_->Append(inode_.get(), path_, data);
  }
  absl::Status Sync() override {
    LEEWAY_RETURN_IF_ERROR(CheckOpen("sync"));
    if (disk_->StrikesNow()) return FileError(EIO, "sync", path_);
    inode_->Sync();
    return absl::OkStatus();
  }
  absl::Status Close() override {
    if (std::exchange(open_, false)) --counted_->to_write;
    return absl::OkStatus();
  }

 private:
  // True if it was closed, or was opened before the machine last went down.
  absl::Status CheckOpen(absl::string_view what) const {
    if (open_ && crashes_ == disk_->crashes_) return absl::OkStatus();
    return FileError(EBADF, what, path_);
  }

  SimFileSystem* const disk_;
  const std::shared_ptr<Inode> inode_;
  const std::string path_;
  const std::uint64_t crashes_;
  const std::shared_ptr<Handles> counted_;
  bool open_ = true;
};

class SimFileSystem::FileToRead final : public ReadableFile {
 public:
  FileToRead(std::shared_ptr<Handles> counted, std::shared_ptr<Inode> inode,
             const std::string& path)
      : counted_(std::move(counted)),
        inode_(std::move(inode)),
        path_(path),
        size_(inode_->contents.size()) {
    ++counted_->to_read;
  }
  ~FileToRead() override { --counted_->to_read; }

  std::uint64_t size() const override { return size_; }

  absl::Status ReadAt(std::uint64_t offset, std::span<std::byte> to) override {
    const std::string& contents = inode_->contents;
    if (offset > contents.size() || to.size() > contents.size() - offset) {
      return absl::OutOfRangeError(absl::StrCat(path_, " ends at ", contents.size()));
    }
    const auto* from = reinterpret_cast<const std::byte*>(contents.data()) + offset;
    std::copy(from, from + to.size(), to.begin());
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Handles> counted_;
  const std::shared_ptr<Inode> inode_;
  const std::string path_;
  const std::uint64_t size_;
};

class SimFileSystem::HeldLock final : public FileLock {
 public:
  HeldLock(std::shared_ptr<std::set<std::string>> locked, std::string path)
      : locked_(std::move(locked)), path_(std::move(path)) {}
  ~HeldLock() override { locked_->erase(path_); }

 private:
  const std::shared_ptr<std::set<std::string>> locked_;
  const std::string path_;
};

SimFileSystem::SimFileSystem(std::uint64_t seed) : random_(seed), folders_{"/", "."} {}
SimFileSystem::~SimFileSystem() = default;

void SimFileSystem::HaltAfter(std::uint64_t operations, std::function<void()> halted) {
  halt_ = {.planned = true, .left = operations, .halted = std::move(halted)};
}

bool SimFileSystem::StrikesNow() {
  if (halt_.now) return true;
  if (halt_.planned && halt_.left-- == 0) {
    halt_.planned = false;
    halt_.now = true;
    halt_.halted();
    return true;
  }
  return faults_.error_probability > 0 && random_.Uniform() < faults_.error_probability;
}

std::uint64_t SimFileSystem::bytes_used() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, inode] : names_) bytes += inode->contents.size();
  return bytes;
}

void SimFileSystem::Apply(const Change& change, Names* names) {
  names->erase(change.gone);
  if (change.inode != nullptr) (*names)[change.path] = change.inode;
}

void SimFileSystem::Make(Change change) {
  Apply(change, &names_);
  changes_.push_back(std::move(change));
}

void SimFileSystem::Crash() {
  ++crashes_;
  locked_ = std::make_shared<std::set<std::string>>();
  open_ = std::make_shared<Handles>();
  // A disk may write changes of names in their order, or in any order.
  const bool in_order = random_.Below(2) == 0;
  const std::uint64_t happened = random_.Below(changes_.size() + 1);
  std::set<std::string> lost;  // names with an earlier change that has not happened
  for (std::uint64_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    const bool follows_lost = lost.contains(change.path) || lost.contains(change.gone);
    if (in_order ? i < happened : !follows_lost && random_.Below(2) == 0) {
      Apply(change, &certain_names_);
    } else {
      lost.insert({change.path, change.gone});
      lost.erase("");
    }
  }
  changes_.clear();
  names_ = certain_names_;
  for (auto& [path, inode] : names_) {
    std::string& contents = inode->contents;
    // It was emptied, but perhaps not durably.
    if (!inode->before.empty() && random_.Below(2) == 0) {
      contents = inode->before;
    } else if (contents.size() > inode->certain) {
      contents.resize(inode->certain + random_.Below(contents.size() - inode->certain + 1));
      if (faults_.torn_writes && random_.Below(2) == 0) {
        const std::size_t torn = std::min(kSectorBytes, contents.size() - inode->certain);
        std::fill(contents.end() - static_cast<std::ptrdiff_t>(torn), contents.end(), '\0');
      }
    }
    inode->Sync();
  }
}

absl::StatusOr<std::string> SimFileSystem::Read(const std::string& path) {
  const std::string normal = Normal(path);
  if (folders_.contains(normal)) return IsFolder("open", path);
  const auto found = names_.find(normal);
  if (found == names_.end()) return FileError(ENOENT, "open", path);
  return found->second->contents;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> SimFileSystem::OpenToRead(const std::string& path) {
  const std::string normal = Normal(path);
  if (folders_.contains(normal)) return IsFolder("open", path);
  const auto found = names_.find(normal);
  if (found == names_.end()) return FileError(ENOENT, "open", path);
  return std::make_unique<FileToRead>(open_, found->second, path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimFileSystem::Create(const std::string& path) {
  return Open(path, /*truncate=*/true);
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimFileSystem::OpenForAppend(
    const std::string& path) {
  return Open(path, /*truncate=*/false);
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimFileSystem::Open(const std::string& path,
                                                                  bool truncate) {
  const absl::string_view what = truncate ? "create" : "open";
  const std::string normal = Normal(path);
  if (!folders_.contains(ParentOf(normal))) return FileError(ENOENT, what, path);
  if (folders_.contains(normal)) return IsFolder(what, path);
  if (StrikesNow()) return FileError(EIO, what, path);
  const auto found = names_.find(normal);
  std::shared_ptr<Inode> inode = found != names_.end() ? found->second : nullptr;
  if (inode == nullptr) {
    inode = std::make_shared<Inode>();
    Make({.path = normal, .inode = inode, .gone = ""});
  } else if (truncate) {
    if (inode->before.empty()) inode->before = inode->contents.substr(0, inode->certain);
    inode->contents.clear();
    inode->certain = 0;
  }
  return std::make_unique<OpenFile>(this, std::move(inode), path);
}

absl::Status SimFileSystem::Append(Inode* inode, const std::string& path, absl::string_view data) {
  const bool strikes = StrikesNow();
  if (strikes) data = data.substr(0, faults_.torn_writes ? random_.Below(data.size() + 1) : 0);
  const std::uint64_t room = faults_.bytes_max - std::min(faults_.bytes_max, bytes_used());
  const bool full = data.size() > room;
  if (full) data = data.substr(0, room);
  inode->contents.append(data.data(), data.size());
  if (full) return FileError(ENOSPC, "write to", path);
  if (strikes) return FileError(EIO, "write to", path);
  return absl::OkStatus();
}

absl::Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::string what = absl::StrCat("rename ", from, " to");
  const std::string source = Normal(from);
  const std::string target = Normal(to);
  const auto found = names_.find(source);
  for (const std::string& path : {from, to}) {
    if (!folders_.contains(Normal(path))) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot ", what, " ", to, ": ", path == to ? "that" : path, " is a folder, not a file"));
  }
  if (found == names_.end() || !folders_.contains(ParentOf(target))) {
    return FileError(ENOENT, what, to);
  }
  if (StrikesNow()) return FileError(EIO, what, to);
  if (source == target) return absl::OkStatus();
  Make({.path = target, .inode = found->second, .gone = source});
  return absl::OkStatus();
}

absl::Status SimFileSystem::Remove(const std::string& path) {
  const std::string normal = Normal(path);
  if (folders_.contains(normal)) {
    LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path));
    if (!names.empty()) return FileError(ENOTEMPTY, "remove", path);
    folders_.erase(normal);
    return absl::OkStatus();
  }
  if (!names_.contains(normal)) return FileError(ENOENT, "remove", path);
  Make({.path = "", .inode = nullptr, .gone = normal});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimFileSystem::List(const std::string& directory) {
  const std::string folder = Normal(directory);
  if (names_.contains(folder)) return FileError(ENOTDIR, "list", directory);
  if (!folders_.contains(folder)) return FileError(ENOENT, "list", directory);
  std::set<std::string> names;  // files and folders together, sorted
  const auto add = [&](const std::string& path) {
    if (path != "/" && path != "." && ParentOf(path) == folder) {
      names.insert(std::filesystem::path(path).filename().string());
    }
  };
  for (const auto& [path, inode] : names_) add(path);
  for (const std::string& path : folders_) add(path);
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status SimFileSystem::CreateDirectories(const std::string& path) {
  for (std::string folder = Normal(path); !folders_.contains(folder);) {
    if (names_.contains(folder)) return FileError(ENOTDIR, "create the folder", path);
    folders_.insert(folder);
    folder = ParentOf(folder);
  }
  return absl::OkStatus();
}

absl::Status SimFileSystem::SyncDirectory(const std::string& path) {
  const std::string folder = Normal(path);
  if (!folders_.contains(folder)) return FileError(ENOENT, "open", path);
  if (StrikesNow()) return FileError(EIO, "sync", path);
  std::erase_if(changes_, [&](const Change& change) {
    if (ParentOf(change.inode != nullptr ? change.path : change.gone) != folder) return false;
    Apply(change, &certain_names_);
    return true;
  });
  return absl::OkStatus();
}

bool SimFileSystem::Exists(const std::string& path) {
  const std::string normal = Normal(path);
  return names_.contains(normal) || folders_.contains(normal);
}

absl::StatusOr<FileKind> SimFileSystem::KindOf(const std::string& path) {
  const std::string normal = Normal(path);
  if (folders_.contains(normal)) return FileKind::kFolder;
  if (!names_.contains(normal)) return FileError(ENOENT, "look at", path);
  return FileKind::kFile;
}

absl::StatusOr<std::uint64_t> SimFileSystem::BytesFree(const std::string& directory) {
  if (!folders_.contains(Normal(directory))) return FileError(ENOENT, "look at", directory);
  return faults_.bytes_max - std::min(faults_.bytes_max, bytes_used());
}

absl::StatusOr<std::unique_ptr<FileLock>> SimFileSystem::Lock(const std::string& path) {
  const std::string normal = Normal(path);
  if (!Exists(path)) {
    LEEWAY_RETURN_IF_ERROR(Create(path).status());
  }
  if (!locked_->insert(normal).second) {
    return absl::AlreadyExistsError(absl::StrCat("cannot lock ", path, ": another process has it"));
  }
  return std::make_unique<HeldLock>(locked_, normal);
}

}  // namespace leeway::runtime
