// LogFiles keeps a file for each process of a launched cluster, with the lines of both its streams.
#ifndef LEEWAY_TOOLS_LAUNCH_LOG_FILES_H_
#define LEEWAY_TOOLS_LAUNCH_LOG_FILES_H_

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/launch/process.h"

namespace leeway::launch {

class LogFiles {
 public:
  // Makes the folder, and in it "server-1.log" for "server 1"; older files are replaced. With an
  // empty folder name there are no files. An error names the file that cannot be written.
  static absl::StatusOr<LogFiles> Open(const std::string& folder,
                                       const std::vector<ProcessSpec>& processes);

  // A line, without its end, of processes[index].
  void Add(std::size_t index, absl::string_view line);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::vector<std::unique_ptr<std::FILE, Closer>> files_;
};

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_LOG_FILES_H_
