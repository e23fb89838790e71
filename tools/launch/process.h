// Start starts processes so that none outlives its parent, and KillDescendants ends whole families
// of them.
#ifndef LEEWAY_TOOLS_LAUNCH_PROCESS_H_
#define LEEWAY_TOOLS_LAUNCH_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::launch {

struct ProcessSpec {
  std::string name;                                // for people, e.g. "server 1"
  std::vector<std::string> arguments;              // the program (looked up in PATH) comes first
  std::map<std::string, std::string> environment;  // on top of the parent's
  std::vector<std::string> unset;                  // removed from the parent's
  // The work is done when every process with this flag has succeeded; the others only serve it.
  bool is_work = false;
  // If it fails, another is started in its place, at most SupervisorOptions::restarts_max in all.
  bool may_restart = false;
  std::string stays_down_because = {};  // printed when it fails and is not replaced; may be empty
};

struct Process {
  pid_t pid = 0;
  int output = -1;  // the read end of its standard output; does not block
  int errors = -1;  // likewise standard error
};

// The file of this process's program.
std::string OwnProgram();

// Names of the settings of clusters (LEEWAY_*, DMLC_*) in this process's environment.
std::vector<std::string> InheritedSettings();

// Starts it in its own process group, without input. It is killed when the process of the calling
// thread dies. NOT_FOUND and other codes say why its program cannot be run.
absl::StatusOr<Process> Start(const ProcessSpec& spec);

// Makes orphans among this process's descendants its children, so that none escapes.
void AdoptOrphans();

// Kills and reaps every descendant of this process, whatever its group or session. The caller has
// called AdoptOrphans before starting them.
void KillDescendants();

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_PROCESS_H_
