#include "ps/checkpoint/manifest_updaters.h"

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/store/feedback.h"
#include "ps/store/shard_store.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

namespace {

// DATA_LOSS where no server could have such a table.
absl::Status CheckUpdaters(const checkpoint::Manifest& manifest) {
  for (const checkpoint::TableEntry& table : manifest.tables) {
    const auto updater = MakeUpdater(table.spec);
    if (absl::IsNotFound(updater.status())) continue;
    if (!updater.ok()) return absl::DataLossError(updater.status().message());
    if ((*updater)->combine() == table.combine) continue;
    return absl::DataLossError(absl::StrCat("table '", table.spec.name,
                                            "' combines otherwise than its updater ",
                                            table.spec.updater.name));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::uint32_t> StateSlotsOf(const TableSpec& spec) {
  const auto updater = MakeUpdater(spec);
  if (!updater.ok()) return std::nullopt;
  return StateSlots(spec, **updater);
}

absl::StatusOr<std::vector<checkpoint::Manifest>> ReadModelChain(runtime::FileSystem* files,
                                                                 const std::string& path) {
  LEEWAY_ASSIGN_OR_RETURN(std::vector<checkpoint::Manifest> chain,
                          checkpoint::ReadChain(files, path));
  // The newest has the tables of all.
  const absl::Status status = CheckUpdaters(chain.front());
  if (status.ok()) return chain;
  return absl::Status(
      status.code(),
      absl::StrCat(checkpoint::JoinPath(path, checkpoint::kManifestName), ": ", status.message()));
}

}  // namespace leeway::ps
