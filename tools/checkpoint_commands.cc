// `leeway checkpoint …`.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/folder.h"
#include "proto/messages/limits.h"
#include "proto/tables/text.h"
#include "ps/checkpoint/export.h"
#include "ps/checkpoint/verify_checkpoint.h"
#include "runtime/files/file_system.h"
#include "tools/admin/admin_call.h"
#include "tools/format/format_units.h"
#include "tools/format/progress_bar.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {
namespace {

using checkpoint::Manifest;
using Json = nlohmann::json;

// Makes the path absolute, since the other processes may have other working folders, and resolves a
// trailing "." or "..", which are no names of checkpoints. The rest is unchanged: the name before a
// ".." may be a link.
absl::StatusOr<std::string> Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  while (!error && absolute.has_relative_path() &&
         (absolute.filename().empty() || absolute.filename() == ".")) {
    absolute = absolute.parent_path();
  }
  if (!error && absolute.filename() == "..") absolute = std::filesystem::canonical(absolute, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot tell where ", path, " is"));
  }
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  if (absolute.native().size() <= proto::kPathBytesMax) return absolute.string();
  return absl::InvalidArgumentError(absl::StrCat("the path is ", absolute.native().size(),
                                                 " bytes long, may be ", proto::kPathBytesMax));
}

// Shows the progress of a checkpoint that is being saved, from the scheduler's status.
void Show(const std::string& status, ProgressBar* bar) {
  const Json json = Json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("checkpoint")) return;
  const Json& saving = json["checkpoint"];
  const double servers = saving.value("servers", 0.0), done = saving.value("servers_done", 0.0);
  bar->ShowText(servers == 0 ? 0 : done / servers,
                absl::StrCat(saving.value("phase", ""), "  clock ", saving.value("clock", 0ull),
                             "  ", done, " of ", servers, " servers"));
}

// Calls `read` with the checkpoint that `path` names, and a function that shows the progress.
template <class Read>
auto ReadAll(const std::string& path, const Read& read)
    -> decltype(read(path, std::declval<ps::VerifyProgress>())) {
  const absl::StatusOr<std::string> absolute = Absolute(path);
  if (!absolute.ok()) return absolute.status();
  const absl::StatusOr<std::string> found =
      checkpoint::FindCheckpoint(runtime::RealFileSystem(), *absolute);
  if (!found.ok()) return found.status();
  ProgressBar bar(/*wanted=*/true);
  return read(*found, [&](std::uint64_t done, std::uint64_t all) {
    bar.ShowText(all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all),
                 absl::StrCat(Megabytes(done), " of ", Megabytes(all)));
  });
}

std::string Line(const checkpoint::Found& found) {
  if (absl::IsNotFound(found.manifest.status())) {
    return absl::StrCat(found.name, "  not finished, or being written");
  }
  if (!found.manifest.ok()) {
    return absl::StrCat(found.name, "  cannot be read: ",
                        proto::Cleaned(found.manifest.status().message(), proto::Lines::kOne));
  }
  const Manifest& manifest = *found.manifest;
  return absl::StrCat(found.name, "  ", manifest.time, "  clock ", manifest.clock, "  ",
                      manifest.tables.size(), " tables  ", manifest.num_shards, " shards  ",
                      Megabytes(manifest.bytes()),
                      manifest.base.has_value() ? "  adds to " + manifest.base->name : "");
}

}  // namespace

int RunCheckpointSave(const CheckpointSaveCommand& command) {
  RoleCommand role;
  role.scheduler = command.scheduler;
  const absl::StatusOr<Config> config = ConfigFor(Role::kTool, role);
  if (!config.ok()) return Complain(config.status());
  const absl::StatusOr<std::string> folder = Absolute(command.folder);
  if (!folder.ok()) return Complain(folder.status());
  const absl::Status told = proto::CheckText("the folder's path", *folder, 0, proto::kPathBytesMax);
  if (!told.ok()) return Complain(told);
  std::vector<std::string> arguments = {*folder};
  if (command.incremental) arguments.push_back("incremental");
  absl::StatusOr<std::string> answer;
  {
    ProgressBar bar(/*wanted=*/true);
    answer = AskScheduler(*config, "checkpoint-save", arguments,
                          [&](const std::string& status) { Show(status, &bar); });
  }
  if (!answer.ok()) return Complain(answer.status());
  const Json saved = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!saved.is_object()) return Complain(absl::InternalError("the scheduler's answer is no JSON"));
  std::printf("%s: clock %llu, %s\n", saved.value("path", "").c_str(), saved.value("clock", 0ull),
              Megabytes(saved.value("bytes", std::uint64_t{0})).c_str());
  return 0;
}

int RunCheckpointList(const std::string& path) {
  const absl::StatusOr<std::string> absolute = Absolute(path);
  if (!absolute.ok()) return Complain(absolute.status());
  const std::string& folder = *absolute;
  runtime::FileSystem* const files = runtime::RealFileSystem();
  if (absl::IsNotFound(files->List(folder).status())) {
    return Complain(absl::NotFoundError(absl::StrCat("there is no folder ", folder)));
  }
  const auto found = checkpoint::ListCheckpoints(files, folder);
  if (!found.ok()) return Complain(found.status());
  for (const checkpoint::Found& one : *found) std::printf("%s\n", Line(one).c_str());
  return 0;
}

int RunCheckpointVerify(const std::string& path) {
  const auto chain = ReadAll(path, [](const std::string& found, ps::VerifyProgress progress) {
    return ps::VerifyCheckpoint(runtime::RealFileSystem(), found, progress);
  });
  if (!chain.ok()) return Complain(chain.status());
  std::uint64_t bytes = 0, files = 0;
  for (const Manifest& manifest : *chain) {
    bytes += manifest.bytes();
    files += manifest.files.size();
  }
  std::printf("%s is whole: clock %llu, %zu tables, %llu files, %s\n", chain->front().name.c_str(),
              static_cast<unsigned long long>(chain->front().clock), chain->front().tables.size(),
              static_cast<unsigned long long>(files), Megabytes(bytes).c_str());
  return 0;
}

int RunCheckpointExport(const std::string& path, const std::string& file) {
  const auto written = ReadAll(path, [&](const std::string& found, ps::VerifyProgress progress) {
    return ps::Export(runtime::RealFileSystem(), found, file, progress);
  });
  if (!written.ok()) return Complain(written.status());
  std::printf("%s: %s\n", file.c_str(), Megabytes(written->bytes).c_str());
  return 0;
}

int RunCheckpointRestore(const std::string& path, const RoleCommand& scheduler) {
  const absl::StatusOr<std::string> absolute = Absolute(path);
  if (!absolute.ok()) return Complain(absolute.status());
  RoleCommand command = scheduler;
  command.restore = *absolute;
  return RunSchedulerCommand(command);
}

}  // namespace leeway::tools
