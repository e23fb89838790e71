// The van on virtual time: a network whose delays, losses and partitions follow from the seed.
#ifndef LEEWAY_VAN_SIM_SIM_VAN_H_
#define LEEWAY_VAN_SIM_SIM_VAN_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/sim/sim_world.h"
#include "van/van.h"

namespace leeway::van {

// What happens to each message on its way.
struct LinkFaults {
  absl::Duration delay_min = absl::Microseconds(50);
  absl::Duration delay_max = absl::Microseconds(50);
  double bytes_per_second = 0;  // 0: unlimited; otherwise messages of one direction queue up
  double drop_probability = 0;
  double duplicate_probability = 0;
  // Delayed by up to reorder_delay past its successors; or, a frame that lands in memory of the
  // receiver's (van/posted_receive.h), halted in its midst for so long.
  double reorder_probability = 0;
  absl::Duration reorder_delay = absl::Milliseconds(5);
};

// A message as those hear it that listen to a simulated network: it is decoded once for all of
// them.
struct Overheard {
  // What sends it, and over which of its connections: each has an order of its own.
  struct Way {
    std::uint64_t van = 0, connection = 0;
    friend auto operator<=>(const Way&, const Way&) = default;
  };
  Overheard(std::string from_host, std::string to_host, const Way& by, Message content);

  std::string from, to;  // hosts
  Way way;
  Message raw;                // its payload as proto::Decode leaves it
  proto::AnyMessage message;  // monostate: it does not decode
  // The name of its type; "?": it does not decode.
  absl::string_view name() const;
};

// A host's network card, which all its connections share. Each way takes one message at a time, in
// order: a message of b bytes that leaves at t is on the wire from `out` to out + b / egress, where
// out is the later of t and when the message before it was gone. Its first byte is there a delay
// later, at `first`, and its last at first + b / egress. The card that receives it is busy with it
// for b / ingress from the later of `first` and when it was done with those before; it is handed
// over when that is over and its last byte is there. So a message alone takes b / bandwidth and the
// delay, and nothing of a card's time is lost while something waits for it. What the switch between
// the cards has to hold is not limited.
struct Nic {
  double egress_bytes_per_second = 0;   // 0: unlimited
  double ingress_bytes_per_second = 0;  // 0: unlimited
};

struct SimNetworkState;

class SimNetwork {
 public:
  explicit SimNetwork(runtime::SimWorld* world);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // The vans of one simulated host; `host_name` is the one given to SimWorld::NewHost.
  // Addresses are "sim://HOST/NAME".
  std::unique_ptr<Factory> NewFactory(const std::string& host_name);

  void SetFaults(const LinkFaults& faults);  // of every link without its own
  void SetFaults(const std::string& from_host, const std::string& to_host,
                 const LinkFaults& faults);

  // Of every host, from now on.
  void SetNics(const Nic& nic);
  struct Traffic {  // what a host's card has sent and received so far, greetings and all
    std::uint64_t frames_out = 0, bytes_out = 0;
    std::uint64_t frames_in = 0, bytes_in = 0;
  };
  Traffic TrafficOf(const std::string& host_name) const;

  // Ends of connections that the vans of a host hold.
  std::size_t ConnectionsOf(const std::string& host_name) const;

  // One-way: nothing from `from` reaches `to`. Messages are lost; connections do not notice.
  void Cut(const std::string& from_host, const std::string& to_host);
  void Heal(const std::string& from_host, const std::string& to_host);
  void HealAll();

  // The host is gone (pair with SimWorld::Kill): its peers see their connections break.
  void Kill(const std::string& host_name);

  // Every connection between the two hosts breaks, and both sides hear of it. What is under way is
  // lost; they may connect again.
  void Break(const std::string& one_host, const std::string& other_host);

  // Hears of every message that a van's owner sends, once, as it leaves: before it is lost,
  // repeated or delayed. Greetings and credits, which are the vans' own, are left out. What it
  // keeps of the message stays as it was. It may change nothing of the network.
  using Tap = std::function<void(const Overheard& heard)>;
  void SetTap(Tap tap);

  // What happens to one message, on top of the faults of its link.
  struct Fate {
    bool lost = false;
    absl::Duration late;    // it arrives so much later than it would
    absl::Duration repeat;  // it arrives a second time, so long after the first; zero: it does not
  };
  // Decides on every message of which the tap hears. It may change nothing of the network.
  using Director = std::function<Fate(const Overheard& heard)>;
  void SetDirector(Director director);

  struct Faulted {  // how often each fault struck
    std::uint64_t dropped = 0, duplicated = 0, reordered = 0, cut = 0;
  };
  Faulted faulted() const;

  // For this folder's own parts.
  const std::shared_ptr<SimNetworkState>& state() const { return state_; }

 private:
  std::shared_ptr<SimNetworkState> state_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_VAN_H_
