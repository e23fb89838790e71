// Command runs a whole program, as a user starts it, and watches it from outside.
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

// The end of a program.
struct Ended {
  int code = -1;  // 128 + N: killed by signal N
  bool in_time = false;
  std::string output;
  std::string errors;
};

// The lines of `errors` that are not lines of the log.
std::vector<std::string> PlainLines(const std::string& errors);
std::vector<std::string> LogLines(const std::string& errors);

// A running program. It sees no LEEWAY_* and DMLC_* but those of `environment`. Its destructor
// kills it with its process group.
class Command {
 public:
  Command(std::vector<std::string> arguments, const Environment& environment);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Waits until either of its streams has contained `text`. False: it never came.
  bool Says(const std::string& text);
  // Waits for a whole line of standard error that contains `text`. "": it never came.
  std::string ErrorLineWith(const std::string& text);

  void Signal(int signal);
  // Waits for its end, and kills it if that does not come within `deadline`.
  Ended Finish(absl::Duration deadline);

 private:
  // Reads what is there, and waits for it until the deadline. False: nothing more came in time.
  bool ReadUntil(absl::Time deadline);
  bool Wait(const std::function<bool()>& enough);
  void Kill();

  launch::Process process_;
  std::string output_;
  std::string errors_;
};

// Runs a program to its end.
Ended RunToEnd(std::vector<std::string> arguments, const Environment& environment = {});

// True if this process has no children: neither its own nor, since it adopts orphans, theirs.
bool NothingRuns();

// The time to wait for an event; sanitizers make everything slower.
absl::Duration Patience();

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_COMMANDS_COMMAND_H_
