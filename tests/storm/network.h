// Network gives every node of a cluster its own network, whose connections can be cut and mended.
//
// Each node lives in a network namespace, with a link to a bridge in ours (which is made for it,
// too: the machine's own network is never touched, and everything ends with the last of its
// processes). Each node has the hardware addresses of its neighbours in a table; a cut is a wrong
// address there. Packets are then lost without an error, as in a broken network; and each direction
// can be cut alone.
#ifndef LEEWAY_TESTS_STORM_NETWORK_H_
#define LEEWAY_TESTS_STORM_NETWORK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/storm/children.h"

namespace leeway::storm {

class Network {
 public:
  // Moves this process into its own namespace, and makes one for each of these places.
  // FAILED_PRECONDITION names what is missing.
  static absl::StatusOr<std::unique_ptr<Network>> Make(const std::vector<std::string>& places);

  // The command prefix to run a command there, and the place's address.
  std::vector<std::string> Inside(const std::string& place) const;
  std::string AddressOf(const std::string& place) const;

  // Packets of `from` no longer reach `to`, or do again.
  absl::Status Cut(const std::string& from, const std::string& to);
  absl::Status Mend(const std::string& from, const std::string& to);

 private:
  struct NetworkNamespace {
    std::string name;
    Child* keeper = nullptr;  // a process that keeps the namespace
    int number = 0;
  };

  Network() = default;
  absl::Status Build(const std::vector<std::string>& places);
  absl::Status Open(const std::string& name, int number);
  absl::Status Tell(const NetworkNamespace& place, const NetworkNamespace& neighbour,
                    const std::string& hardware);
  const NetworkNamespace& Of(const std::string& name) const { return places_.at(name); }
  // Runs it to its end.
  absl::Status Do(const std::string& command);

  Children processes_;
  std::map<std::string, NetworkNamespace> places_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_NETWORK_H_
