#include "tests/storm/network.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace leeway::storm {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr char kNoAddress[] = "02:00:00:00:ff:ff";
constexpr int kOwnNumber = 250;  // of this process, on the bridge

// An address for documentation and tests; in a namespace of its own it collides with none.
std::string AddressOfNumber(int number) { return absl::StrCat("198.51.100.", number); }
std::string HardwareOf(int number) { return absl::StrFormat("02:00:00:00:00:%02x", number); }

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> Network::Make(const std::vector<std::string>& places) {
  std::unique_ptr<Network> network(new Network());
  if (absl::Status built = network->Build(places); !built.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot make network namespaces, which needs root, iproute2 and a kernel with veth "
        "and bridges: ",
        built.message()));
  }
  return network;
}

absl::Status Network::Build(const std::vector<std::string>& places) {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("unshare: ", std::strerror(errno)));
  }
  for (const std::string& command :
       {std::string("ip link set lo up"),
        absl::StrCat("ip link add hub address ", HardwareOf(kOwnNumber), " type bridge"),
        absl::StrCat("ip addr add ", AddressOfNumber(kOwnNumber), "/24 dev hub"),
        std::string("ip link set hub up")}) {
    LEEWAY_RETURN_IF_ERROR(Do(command));
  }
  int number = 0;
  for (const std::string& place : places) LEEWAY_RETURN_IF_ERROR(Open(place, ++number));
  for (const auto& [name, place] : places_) {
    for (const auto& [other_name, other] : places_) {
      if (name == other_name) continue;
      LEEWAY_RETURN_IF_ERROR(Tell(place, other, HardwareOf(other.number)));
    }
  }
  return absl::OkStatus();
}

absl::Status Network::Open(const std::string& name, int number) {
  bool there = false;
  launch::ProcessSpec keeper;
  keeper.name = name;
  keeper.arguments = {"unshare", "--net", "sh", "-c", "echo there; exec sleep infinity"};
  LEEWAY_ASSIGN_OR_RETURN(
      Child * child, processes_.Start(keeper, [&there](launch::Stream, absl::string_view line) {
        there = there || line == "there";
      }));
  const absl::Time deadline = absl::Now() + kPatience;
  while (!there && child->running() && absl::Now() < deadline) {
    processes_.Poll(absl::Milliseconds(20));
  }
  if (!there) return absl::InternalError(absl::StrCat("unshare: ", child->last_words()));
  places_[name] = {name, child, number};
  const std::string link = absl::StrCat("link", number);
  const std::string in = absl::StrCat("nsenter -t ", child->pid(), " -n ");
  for (const std::string& command :
       {absl::StrCat("ip link add ", link, " type veth peer name eth0 address ", HardwareOf(number),
                     " netns ", child->pid()),
        absl::StrCat("ip link set ", link, " master hub up"), in + "ip link set lo up",
        absl::StrCat(in, "ip addr add ", AddressOfNumber(number), "/24 dev eth0"),
        in + "ip link set eth0 up"}) {
    LEEWAY_RETURN_IF_ERROR(Do(command));
  }
  return absl::OkStatus();
}

std::vector<std::string> Network::Inside(const std::string& place) const {
  return {"nsenter", "-t", absl::StrCat(Of(place).keeper->pid()), "-n", "--"};
}

std::string Network::AddressOf(const std::string& place) const {
  return AddressOfNumber(Of(place).number);
}

absl::Status Network::Cut(const std::string& from, const std::string& to) {
  return Tell(Of(from), Of(to), kNoAddress);
}

absl::Status Network::Mend(const std::string& from, const std::string& to) {
  return Tell(Of(from), Of(to), HardwareOf(Of(to).number));
}

absl::Status Network::Tell(const NetworkNamespace& place, const NetworkNamespace& neighbour,
                           const std::string& hardware) {
  return Do(absl::StrCat("nsenter -t ", place.keeper->pid(), " -n ip neigh replace ",
                         AddressOfNumber(neighbour.number), " lladdr ", hardware,
                         " dev eth0 nud permanent"));
}

absl::Status Network::Do(const std::string& command) {
  launch::ProcessSpec spec;
  spec.name = command;
  spec.arguments = absl::StrSplit(command, ' ');
  LEEWAY_ASSIGN_OR_RETURN(Child * child,
                          processes_.Start(spec, [](launch::Stream, absl::string_view) {}));
  const absl::Time deadline = absl::Now() + kPatience;
  while (child->running() && absl::Now() < deadline) processes_.Poll(absl::Milliseconds(20));
  if (!child->running() && child->exit_code() == 0) {
    processes_.Forget(child);
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("'", command, "': ", child->last_words()));
}

}  // namespace leeway::storm
