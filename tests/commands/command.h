// Whole programs, started as a user would and watched from outside.
#ifndef LEEWAY_TESTS_COMMANDS_COMMAND_H_
#define LEEWAY_TESTS_COMMANDS_COMMAND_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/launch/process.h"

namespace leeway::tests {

using Environment = std::map<std::string, std::string>;

// How a program ended.
struct Ended {
  int code = -1;  // 128 + N: killed by signal N
  bool in_time = false;
  std::string output;
  std::string errors;
};

// What stands in it besides the lines of the log.
std::vector<std::string> PlainLines(const std::string& errors);
std::vector<std::string> LogLines(const std::string& errors);

// A program that runs. It sees nothing of LEEWAY_* and DMLC_* but what it is given. Killed with
// its process group when this goes.
class Command {
 public:
  Command(std::vector<std::string> arguments, const Environment& environment);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Waits until `text` stands in what it has written to either stream. False: it never came.
  bool Says(const std::string& text);
  // Waits for a whole line of standard error that has `text` in it. "": it never came.
  std::string ErrorLineWith(const std::string& text);

  void Signal(int signal);
  // Waits for its end, and kills it if that does not come within `deadline`.
  Ended Finish(absl::Duration deadline);

 private:
  // Reads what there is, waiting for it until then. False: nothing more comes, or not in time.
  bool ReadUntil(absl::Time deadline);
  bool Wait(const std::function<bool()>& enough);
  void Kill();

  launch::Process process_;
  std::string output_;
  std::string errors_;
};

// Runs it to its end.
Ended RunToEnd(std::vector<std::string> arguments, const Environment& environment = {});

// Whether this process has no children: none that it started and, since it adopts orphans, none
// that those have left behind.
bool NothingRuns();

// Sanitizers make everything slower.
absl::Duration Patience();

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_COMMAND_H_
