// SimNetwork is a network on virtual time whose delays, losses and partitions follow from the seed.
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

// The faults of a link, for each message.
struct LinkFaults {
  absl::Duration delay_min = absl::Microseconds(50);
  absl::Duration delay_max = absl::Microseconds(50);
  double bytes_per_second = 0;  // 0: unlimited; else messages of one direction queue up
  double drop_probability = 0;
  double duplicate_probability = 0;
  // The message is delayed by up to reorder_delay behind its successors. A frame that is received
  // into the receiver's memory (van/posted_receive.h) stops in its middle for that long instead.
  double reorder_probability = 0;
  absl::Duration reorder_delay = absl::Milliseconds(5);
};

// A message as a tap or director of a simulated network sees it. It is decoded once for all of
// them.
struct Overheard {
  // The van that sends it and its connection: each connection has an order of its own.
  struct Way {
    std::uint64_t van = 0, connection = 0;
    friend auto operator<=>(const Way&, const Way&) = default;
  };
  Overheard(std::string from_host, std::string to_host, const Way& by, Message content);

  std::string from, to;  // hosts
  Way way;
  Message raw;                // with its payload as proto::Decode leaves it
  proto::AnyMessage message;  // monostate: it cannot be decoded
  // The name of its type; "?": it cannot be decoded.
  absl::string_view name() const;
};

// A host's network card, which all its connections share. Each direction handles one message at a
// time, in order. A message of b bytes that leaves at t is on the wire from `out` to out + b /
// egress, where `out` is the later of t and the end of the message before it. Its first byte
// arrives a delay later, at `first`, and its last at first + b / egress. The receiving card is busy
// with it for b / ingress from the later of `first` and the end of its earlier messages; the
// message is delivered when that is over and its last byte is there. So a single message takes b /
// bandwidth and the delay, and a card is never idle while a message waits for it. The buffers of
// the switch between the cards are unlimited.
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

  void SetFaults(const LinkFaults& faults);  // of every link without faults of its own
  void SetFaults(const std::string& from_host, const std::string& to_host,
                 const LinkFaults& faults);

  // Sets the cards of all hosts, from now on.
  void SetNics(const Nic& nic);
  // Sets that of one host, whatever all have.
  void SetNic(const std::string& host_name, const Nic& nic);
  struct Traffic {  // what a host's card has sent and received so far, including greetings
    std::uint64_t frames_out = 0, bytes_out = 0;
    std::uint64_t frames_in = 0, bytes_in = 0;
  };
  Traffic TrafficOf(const std::string& host_name) const;

  // The number of ends of connections that the vans of a host hold.
  std::size_t ConnectionsOf(const std::string& host_name) const;

  // Cuts one direction: no message from `from_host` reaches `to_host`. Messages are lost;
  // connections do not notice.
  void Cut(const std::string& from_host, const std::string& to_host);
  void Heal(const std::string& from_host, const std::string& to_host);
  void HealAll();

  // The host dies (together with SimWorld::Kill): its peers' connections break.
  void Kill(const std::string& host_name);

  // Breaks every connection between the two hosts, and reports that to both sides. Messages under
  // way are lost; they may connect again.
  void Break(const std::string& one_host, const std::string& other_host);

  // Called for every message that a van's owner sends, once, as it leaves: before it is lost,
  // repeated or delayed. Greetings and credits, which the vans send themselves, are left out. Parts
  // of the message that it keeps do not change. It must not change the network.
  using Tap = std::function<void(const Overheard& heard)>;
  void SetTap(Tap tap);

  // The fate of one message, in addition to the faults of its link.
  struct Fate {
    bool lost = false;
    absl::Duration delay;   // additional
    absl::Duration repeat;  // time until it arrives a second time; zero: it does not
  };
  // Decides the fate of every message that the tap sees. It must not change the network.
  using Director = std::function<Fate(const Overheard& heard)>;
  void SetDirector(Director director);

  struct Faulted {  // how often each fault occurred
    std::uint64_t dropped = 0, duplicated = 0, reordered = 0, cut = 0;
  };
  Faulted faulted() const;

  // For other files of this folder.
  const std::shared_ptr<SimNetworkState>& state() const { return state_; }

 private:
  std::shared_ptr<SimNetworkState> state_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_VAN_H_
