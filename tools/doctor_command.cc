// `leeway doctor`: checks this machine for a node, and says what to change.
#include <cstdio>

#include "proto/tables/text.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/findings.h"
#include "tools/options/commands.h"

namespace leeway::tools {

int RunDoctorCommand(bool json) {
  const DoctorFacts facts = GatherFacts();
  const std::vector<Finding> findings = Findings(facts);
  const std::string text = json ? DoctorJson(facts, findings) + "\n" : DoctorText(findings);
  // Settings may hold anything.
  std::fputs(proto::Cleaned(text, proto::Lines::kMany).c_str(), stdout);
  return DoctorCode(findings);
}

}  // namespace leeway::tools
