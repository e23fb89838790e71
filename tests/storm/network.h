// A network of its own for every node of a cluster, whose connections can be cut and mended.
//
// Each node lives in a network namespace, with a link to a bridge in ours (which is made for it,
// too: the machine's own network is never touched, and all of it is gone with the last of its
// processes). Who cannot reach whom is a matter of neighbours' hardware addresses: all are told to
// each node, and a cut is a wrong one. What is sent then goes nowhere, without a word, as in a
// network that is broken; and each direction can be cut alone.
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
  // Moves this process into a namespace of its own, and makes one for each of these places.
  // FAILED_PRECONDITION says what is missing to do so.
  static absl::StatusOr<std::unique_ptr<Network>> Make(const std::vector<std::string>& places);

  // What to run a command there with, and how it is reached.
  std::vector<std::string> Inside(const std::string& place) const;
  std::string AddressOf(const std::string& place) const;

  // What one sends no longer reaches the other, or does again.
  absl::Status Cut(const std::string& from, const std::string& to);
  absl::Status Mend(const std::string& from, const std::string& to);

 private:
  struct Place {
    std::string name;
    Child* keeper = nullptr;  // a process whose namespace it is
    int number = 0;
  };

  Network() = default;
  absl::Status Build(const std::vector<std::string>& places);
  absl::Status Open(const std::string& name, int number);
  absl::Status Tell(const Place& place, const Place& neighbour, const std::string& hardware);
  const Place& Of(const std::string& name) const { return places_.at(name); }
  // Runs it to its end.
  absl::Status Do(const std::string& command);

  Children processes_;
  std::map<std::string, Place> places_;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_NETWORK_H_
