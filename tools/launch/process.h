// Starting processes so that none outlives its parent, and ending whole families of them.
#ifndef LEEWAY_TOOLS_LAUNCH_PROCESS_H_
#define LEEWAY_TOOLS_LAUNCH_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::launch {

struct ProcessSpec {
  std::string name;                                // what people know it by, e.g. "server 1"
  std::vector<std::string> arguments;              // the program (looked up in PATH) comes first
  std::map<std::string, std::string> environment;  // on top of the parent's
  std::vector<std::string> unset;                  // taken out of the parent's
  // The work is done when every process marked so has succeeded; the others only serve it.
  bool is_work = false;
  // When it fails, another is started in its place, as often as SupervisorOptions::restarts_max.
  bool may_restart = false;
  std::string stays_down_because = {};  // said when it fails and is not started again; may be empty
};

struct Process {
  pid_t pid = 0;
  int output = -1;  // what it writes to standard output; does not block
  int errors = -1;  // likewise standard error
};

// The file this process runs.
std::string OwnProgram();

// Names of the settings of clusters (LEEWAY_*, DMLC_*) in this process's environment.
std::vector<std::string> InheritedSettings();

// Starts it in a process group of its own, with no input. It is killed when the calling thread's
// process dies. NOT_FOUND and the like say why its program cannot be run.
absl::StatusOr<Process> Start(const ProcessSpec& spec);

// Makes orphans among this process's descendants its children, so that none escapes.
void AdoptOrphans();

// Kills and reaps every descendant of this process, whatever its group or session. The caller has
// called AdoptOrphans before starting them.
void KillDescendants();

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_PROCESS_H_
