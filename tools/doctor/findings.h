// Findings are the conclusions of `leeway doctor` from its facts: what works, what does not, and
// what to change.
#ifndef LEEWAY_TOOLS_DOCTOR_FINDINGS_H_
#define LEEWAY_TOOLS_DOCTOR_FINDINGS_H_

#include <string>
#include <vector>

#include "tools/doctor/facts.h"

namespace leeway::tools {

enum class Mark {
  kOk,
  kWarn,  // works, but not as well as it could
  kBad,   // a node with these settings does not work
};
const char* NameOf(Mark mark);  // "ok", "warn", "bad"

struct Finding {
  Mark mark = Mark::kOk;
  std::string what;   // "locked memory"
  std::string found;  // "8388608 bytes"
  std::string mend;   // what to change, unless kOk; one line
};

// How peers are reached, and why: "shm", "rdma", "tcp" or "zmq"; "nothing" if not at all.
struct Choice {
  std::string transport;
  std::string why;
};
Choice OnThisMachine(const DoctorFacts& facts);
// The other machine's faults cannot be seen from here.
Choice OnOthers(const DoctorFacts& facts);

// In the order in which they are shown.
std::vector<Finding> Findings(const DoctorFacts& facts);

// One line for each finding, and under those that are not ok what to change.
std::string DoctorText(const std::vector<Finding>& findings);
// All facts and findings, for programs.
std::string DoctorJson(const DoctorFacts& facts, const std::vector<Finding>& findings);
// 1 if anything is bad.
int DoctorCode(const std::vector<Finding>& findings);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_DOCTOR_FINDINGS_H_
