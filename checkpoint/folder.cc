#include "checkpoint/folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"

namespace leeway::checkpoint {
namespace {

constexpr absl::string_view kNamePrefix = "ckpt-";
constexpr absl::string_view kShardPrefix = "shard-";
constexpr absl::string_view kShardSuffix = ".safetensors";
constexpr absl::string_view kResidualPrefix = "residuals-worker-";

absl::StatusOr<std::string> ReadText(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::ReadableFile> file,
                          files->OpenToRead(path));
  if (file->size() > kManifestBytesMax) {
    return absl::DataLossError(absl::StrCat(path, " has ", file->size(), " bytes"));
  }
  std::string text(file->size(), '\0');
  LEEWAY_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

absl::Status CheckFolder(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(const runtime::FileKind kind, files->KindOf(path));
  if (kind == runtime::FileKind::kFolder) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " is no folder"));
}

// A folder that is not there has nothing in it; one that cannot be read is an error.
absl::StatusOr<std::vector<std::string>> ListIfThere(runtime::FileSystem* files,
                                                     const std::string& directory) {
  auto names = files->List(directory);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

absl::StatusOr<bool> HasManifest(runtime::FileSystem* files, const std::string& path) {
  const absl::Status there = files->KindOf(JoinPath(path, kManifestName)).status();
  if (absl::IsNotFound(there)) return false;
  LEEWAY_RETURN_IF_ERROR(there);
  return true;
}

// Removes the files that clusters write; any other file stays, and is an error.
absl::Status RemoveFilesIn(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(path));
  absl::Status status;
  for (const std::string& name : names) {
    const std::string file = JoinPath(path, name);
    LEEWAY_ASSIGN_OR_RETURN(const runtime::FileKind kind, files->KindOf(file));
    if (IsFileOfCheckpoint(name) && kind == runtime::FileKind::kFile) {
      LEEWAY_RETURN_IF_ERROR(files->Remove(file));
    } else {
      status.Update(absl::FailedPreconditionError(
          absl::StrCat(file, " is no file of a checkpoint: it stays")));
    }
  }
  return status;
}

}  // namespace

std::string CheckpointName(std::uint64_t number) {
  return absl::StrCat(kNamePrefix, absl::Dec(number, absl::kZeroPad8));
}

std::optional<std::uint64_t> CheckpointNumber(absl::string_view name) {
  std::uint64_t number = 0;
  if (!absl::StartsWith(name, kNamePrefix) ||
      !absl::SimpleAtoi(name.substr(kNamePrefix.size()), &number) ||
      CheckpointName(number) != name || number > kNumberMax) {
    return std::nullopt;
  }
  return number;
}

std::string ShardFileName(std::uint32_t shard) {
  return absl::StrFormat("%s%05u%s", kShardPrefix, shard, kShardSuffix);
}

bool IsFileOfCheckpoint(absl::string_view name) {
  if (name == kManifestName || name == runtime::TemporaryName(kManifestName)) return true;
  std::uint32_t number = 0;
  absl::string_view digits = name;
  if (absl::ConsumePrefix(&digits, kShardPrefix) && absl::ConsumeSuffix(&digits, kShardSuffix)) {
    return absl::SimpleAtoi(digits, &number) && ShardFileName(number) == name;
  }
  digits = name;
  return absl::ConsumePrefix(&digits, kResidualPrefix) &&
         absl::ConsumeSuffix(&digits, kShardSuffix) && absl::SimpleAtoi(digits, &number) &&
         ResidualFileName(number) == name;
}

std::string ResidualFileName(std::uint32_t rank) {
  return absl::StrCat(kResidualPrefix, rank, kShardSuffix);
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  return absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", name);
}

std::pair<std::string, std::string> SplitPath(absl::string_view path) {
  while (path.size() > 1 && absl::ConsumeSuffix(&path, "/")) {
  }
  const std::size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return {".", std::string(path)};
  return {std::string(path.substr(0, std::max<std::size_t>(slash, 1))),
          std::string(path.substr(slash + 1))};
}

absl::StatusOr<Manifest> ReadManifest(runtime::FileSystem* files, const std::string& path) {
  const std::string file = JoinPath(path, kManifestName);
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, ReadText(files, file));
  absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return runtime::Prefixed(file, manifest.status());
  return manifest;
}

absl::StatusOr<std::vector<Found>> ListCheckpoints(runtime::FileSystem* files,
                                                   const std::string& directory) {
  std::vector<Found> found;
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListIfThere(files, directory));
  for (const std::string& name : names) {
    const std::optional<std::uint64_t> number = CheckpointNumber(name);
    if (!number.has_value()) continue;
    found.push_back({.number = *number,
                     .name = name,
                     .manifest = ReadManifest(files, JoinPath(directory, name))});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.number < b.number; });
  return found;
}

absl::StatusOr<std::vector<std::string>> ListForeign(runtime::FileSystem* files,
                                                     const std::string& directory) {
  std::vector<std::string> foreign;
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListIfThere(files, directory));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kNamePrefix)) continue;
    if (CheckpointNumber(name).has_value() && CheckFolder(files, JoinPath(directory, name)).ok()) {
      continue;
    }
    foreign.push_back(name);
  }
  return foreign;
}

absl::StatusOr<std::string> FindCheckpoint(runtime::FileSystem* files, const std::string& path) {
  const auto [directory, name] = SplitPath(path);
  LEEWAY_ASSIGN_OR_RETURN(const bool finished, HasManifest(files, path));
  if (finished) return JoinPath(directory, name);
  if (absl::IsNotFound(files->List(path).status())) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<Found> found, ListCheckpoints(files, path));
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    if (absl::IsNotFound(it->manifest.status())) continue;  // not finished
    // One that is damaged is not passed over: an older one is perhaps not what is wanted.
    LEEWAY_RETURN_IF_ERROR(it->manifest.status());
    return JoinPath(path, it->name);
  }
  return absl::NotFoundError(
      absl::StrCat(path, " is no finished checkpoint, and there is none in it"));
}

absl::StatusOr<std::vector<Manifest>> ReadChain(runtime::FileSystem* files,
                                                const std::string& path) {
  const auto [directory, name] = SplitPath(path);
  std::vector<Manifest> chain;
  LEEWAY_ASSIGN_OR_RETURN(Manifest newest, ReadManifest(files, path));
  if (newest.name != name) {
    return absl::DataLossError(absl::StrCat(path, " holds a checkpoint with the name ", newest.name,
                                            ": its folder may not be renamed"));
  }
  chain.push_back(std::move(newest));
  while (chain.back().base.has_value()) {
    const Base base = *chain.back().base;
    const std::string base_path = JoinPath(directory, base.name);
    if (chain.size() >= kChainMax) {
      return absl::DataLossError(
          absl::StrCat(path, " builds on more than ", kChainMax, " checkpoints"));
    }
    absl::StatusOr<Manifest> older = ReadManifest(files, base_path);
    if (!older.ok()) {
      return absl::DataLossError(absl::StrCat(chain.back().name, " adds to ", base.name, ", but ",
                                              older.status().message()));
    }
    if (const absl::Status fits = CheckBase(chain.back(), *older); !fits.ok()) {
      return absl::DataLossError(
          absl::StrCat(JoinPath(base_path, kManifestName), ": ", fits.message()));
    }
    chain.push_back(*std::move(older));
  }
  return chain;
}

absl::Status StartCheckpoint(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_RETURN_IF_ERROR(files->CreateDirectories(path));
  LEEWAY_RETURN_IF_ERROR(CheckFolder(files, path));
  LEEWAY_ASSIGN_OR_RETURN(const bool finished, HasManifest(files, path));
  if (finished) return absl::AlreadyExistsError(absl::StrCat(path, " is a checkpoint already"));
  LEEWAY_RETURN_IF_ERROR(RemoveFilesIn(files, path));
  return files->SyncDirectory(SplitPath(path).first);
}

absl::Status FinishCheckpoint(runtime::FileSystem* files, const std::string& path,
                              Manifest* manifest) {
  LEEWAY_RETURN_IF_ERROR(CheckManifest(*manifest));
  // The names of its files must not be less certain than the manifest that speaks of them.
  LEEWAY_RETURN_IF_ERROR(files->SyncDirectory(path));
  return runtime::WriteFileAtomically(files, JoinPath(path, kManifestName),
                                      EncodeManifest(manifest));
}

absl::Status RemoveCheckpoint(runtime::FileSystem* files, const std::string& path) {
  LEEWAY_RETURN_IF_ERROR(CheckFolder(files, path));
  const std::string manifest = JoinPath(path, kManifestName);
  if (const auto kind = files->KindOf(manifest); kind.ok() && *kind == runtime::FileKind::kFile) {
    LEEWAY_RETURN_IF_ERROR(files->Remove(manifest));
    LEEWAY_RETURN_IF_ERROR(files->SyncDirectory(path));
  }
  LEEWAY_RETURN_IF_ERROR(RemoveFilesIn(files, path));
  LEEWAY_RETURN_IF_ERROR(files->Remove(path));
  return files->SyncDirectory(SplitPath(path).first);
}

std::vector<std::string> Superfluous(const std::vector<Found>& found, std::uint64_t keep) {
  std::map<std::string, const Manifest*> finished;
  for (const Found& one : found) {
    if (one.manifest.ok()) finished[one.name] = &*one.manifest;
  }
  std::set<std::string> kept;
  std::uint64_t roots = 0;
  for (auto it = found.rbegin(); it != found.rend() && roots < keep; ++it) {
    if (!it->manifest.ok()) continue;
    ++roots;
    const Manifest* next = &*it->manifest;
    while (kept.insert(next->name).second && next->base.has_value()) {
      const auto base = finished.find(next->base->name);
      if (base == finished.end()) break;
      next = base->second;
    }
  }
  std::vector<std::string> superfluous;
  for (const Found& one : found) {
    if (one.manifest.ok() && !kept.contains(one.name)) superfluous.push_back(one.name);
  }
  return superfluous;
}

}  // namespace leeway::checkpoint
