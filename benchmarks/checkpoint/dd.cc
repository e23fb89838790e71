#include "checkpoint/dd.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "checkpoint/model.h"

namespace leeway::bench {

double RateOfDd(const std::string& folder, std::uint64_t bytes) {
  const std::string path = folder + "/dd";
  const std::uint64_t megabytes = bytes >> 20;
  std::vector<std::string> words = {"dd",
                                    "if=/dev/zero",
                                    "of=" + path,
                                    "bs=1M",
                                    "conv=fsync",
                                    "status=none",
                                    absl::StrCat("count=", megabytes)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const absl::Time start = absl::Now();
  pid_t dd = 0;
  int status = 0;
  if (posix_spawnp(&dd, "dd", nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(dd, &status, 0) != dd || status != 0) {
    Die(absl::UnavailableError(absl::StrCat("dd could not write ", path)));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  unlink(path.c_str());
  return static_cast<double>(megabytes << 20) / seconds / 1e6;
}

}  // namespace leeway::bench
