// `leeway lab …` runs the program of the staleness lab, leeway-lab, which lies beside this one: it
// has workloads and a simulator in it, which no node of a cluster needs.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tools/launch/process.h"
#include "tools/options/commands.h"

namespace leeway::tools {

int RunLabCommand(const std::vector<std::string>& arguments) {
  const std::string program =
      std::filesystem::path(launch::OwnProgram()).replace_filename("leeway-lab").string();
  std::vector<char*> all = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) all.push_back(const_cast<char*>(argument.c_str()));
  all.push_back(nullptr);
  execv(program.c_str(), all.data());
  return Complain(
      absl::NotFoundError(absl::StrCat("cannot run ", program, ": ", std::strerror(errno),
                                       "; `./dev lab` in Leeway's sources builds it and runs it")));
}

}  // namespace leeway::tools
