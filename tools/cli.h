// Main is the command line of `leeway`.
#ifndef LEEWAY_TOOLS_CLI_H_
#define LEEWAY_TOOLS_CLI_H_

#include <string>
#include <vector>

namespace leeway::tools {

// Runs the command and returns its exit code: 0, 2 for a command line with errors, 1 for
// most other failures. `arguments` are argv, the program's name included.
int Main(const std::vector<std::string>& arguments);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_CLI_H_
