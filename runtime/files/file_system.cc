#include "runtime/files/file_system.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::runtime {
namespace {

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status WriteWhole(FileSystem* files, const std::string& path, absl::string_view contents) {
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files->Create(path));
  LEEWAY_RETURN_IF_ERROR(file->Append(contents));
  LEEWAY_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

std::string TemporaryName(absl::string_view path) { return absl::StrCat(path, ".partial"); }

absl::Status WriteFileAtomically(FileSystem* files, const std::string& path,
                                 absl::string_view contents) {
  const std::string temporary = TemporaryName(path);
  absl::Status status = WriteWhole(files, temporary, contents);
  if (status.ok()) status = files->Rename(temporary, path);
  if (!status.ok()) {
    // A leftover temporary file does no harm; the first error is the one to return.
    files->Remove(temporary).IgnoreError();
    return status;
  }
  return files->SyncDirectory(FolderOf(path));
}

}  // namespace leeway::runtime
