#include "van/sim/sim_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {
namespace {

// An address consists of a host and a name. Host names that end like this do not resolve.
constexpr absl::string_view kUnresolvable = ".invalid";

absl::StatusOr<std::string> HostOf(absl::string_view address) {
  absl::string_view rest = address;
  const std::size_t slash =
      absl::ConsumePrefix(&rest, "sim://") ? rest.find('/') : absl::string_view::npos;
  if (slash == absl::string_view::npos || slash == 0 || slash + 1 == rest.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is not a simulated address: sim://HOST/NAME"));
  }
  const absl::string_view host = rest.substr(0, slash);
  if (absl::EndsWith(host, kUnresolvable)) {
    return absl::NotFoundError(absl::StrCat(address, ": unknown host '", host, "'"));
  }
  return std::string(host);
}

int SideOf(ConnId conn) { return static_cast<int>(conn & 1); }
ConnId OtherEnd(ConnId conn) { return conn ^ 1; }

SimConnection* FindConnection(SimNetworkState& network, ConnId conn) {
  const auto found = network.connections.find(conn >> 1);
  return found == network.connections.end() ? nullptr : &found->second;
}

// The link whose messages arrive at that end.
SimNetworkState::HostPair LinkTo(const SimConnection& connection, ConnId conn) {
  return {connection.ends[1 - SideOf(conn)].host, connection.ends[SideOf(conn)].host};
}

// Carries an event without size (the beginning or end of a connection) to that end.
void Carry(SimNetworkState& network, SimConnection* connection, ConnId to,
           std::function<void(SimNetworkState&)> task) {
  SimConnection::End& end = connection->ends[SideOf(to)];
  const auto trip =
      network.Leave(LinkTo(*connection, to), 0, connection->ends[1 - SideOf(to)], &end);
  network.Arrive(trip, 0, end.nic, std::move(task));
}

}  // namespace

// A message under way.
struct SimTransport::Packet {
  std::vector<std::byte> head;
  Frames payload;
  std::uint64_t bytes = 0;
  mutable absl::string_view name;  // Name(), when it is known

  // The message without its prefix; shares the payload.
  Message Content() const {
    return {Buffer::CopyOf(head.data() + kPrefixBytes, head.size() - kPrefixBytes), payload};
  }
  // Decoded when first needed: by the tap or the director as the message leaves, else as it
  // arrives.
  absl::string_view Name() const {
    if (head.size() <= kPrefixBytes) return "Credit";
    if (name.empty()) name = Overheard("", "", {}, Content()).name();
    return name;
  }
};

SimTransport::SimTransport(std::shared_ptr<SimNetworkState> network, std::string host,
                           runtime::Loop* loop)
    : network_(std::move(network)), id_(network_->next_id++), host_(std::move(host)), loop_(loop) {
  network_->transports.insert({id_, this});
}

SimTransport::~SimTransport() {
  lifetime_.End();
  if (!dead_) {
    for (const std::string& address : listening_) network_->listeners.erase(address);
    while (!conns_.empty()) Close(*conns_.begin());
    network_->transports.erase({id_, this});
  }
}

absl::StatusOr<std::string> SimTransport::Listen(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string host, HostOf(address));
  if (host != host_) {
    return absl::NotFoundError(absl::StrCat("cannot listen on ", address, ": this host is '", host_,
                                            "'; set LEEWAY_HOST to it"));
  }
  if (!network_->listeners.try_emplace(std::string(address), this).second) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot listen on ", address,
        ": it is in use; choose another name (LEEWAY_SCHEDULER) or stop who holds it"));
  }
  listening_.insert(std::string(address));
  return std::string(address);
}

absl::StatusOr<ConnId> SimTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string host, HostOf(address));
  const std::uint64_t id = network_->next_id++;
  const ConnId conn = id << 1;
  SimConnection& connection = network_->connections[id];
  connection.ends[0].host = host_;
  connection.ends[1].host = host;
  for (SimConnection::End& end : connection.ends) end.nic = &network_->nics[end.host];
  connection.ends[0].transport = this;
  conns_.insert(conn);
  const ConnId there = OtherEnd(conn);
  Carry(*network_, &connection, there,
        [there, address = std::string(address)](SimNetworkState& network) {
          ArriveDial(network, there, address);
        });
  return conn;
}

void SimTransport::ArriveDial(SimNetworkState& network, ConnId conn, const std::string& address) {
  SimConnection* connection = FindConnection(network, conn);
  if (connection == nullptr || network.IsCut(LinkTo(*connection, conn))) return;
  SimConnection::End& end = connection->ends[1];
  const auto found = network.listeners.find(address);
  if (found == network.listeners.end()) {
    return SendClose(network, OtherEnd(conn), "connection refused");
  }
  end.transport = found->second;
  end.transport->conns_.insert(conn);
  end.transport->OnLoop(conn, [conn](SimTransport& self) { self.events_->OnAccepted(conn); });
  const ConnId back = OtherEnd(conn);
  Carry(network, connection, back, [back](SimNetworkState& net) {
    SimConnection* standing = FindConnection(net, back);
    if (standing == nullptr || standing->ends[0].transport == nullptr) return;
    if (net.IsCut(LinkTo(*standing, back))) return;
    standing->ends[0].transport->OnLoop(
        back, [back](SimTransport& self) { self.events_->OnOpened(back); });
  });
}

void SimTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  SimConnection* connection = FindConnection(*network_, conn);
  if (connection == nullptr || !conns_.contains(conn)) {
    return Owe(std::move(done), absl::UnavailableError("the connection is closed"));
  }
  auto packet = std::make_shared<Packet>();
  packet->head.resize(kPrefixBytes + message.header.size());
  PutPrefix(prefix, packet->head.data());
  std::copy_n(message.header.data(), message.header.size(), packet->head.data() + kPrefixBytes);
  for (const Buffer& frame : message.payload) {
    packet->payload.push_back(Buffer::CopyOf(frame.data(), frame.size()));
  }
  packet->bytes = packet->head.size() + message.TotalBytes() - message.header.size();
  Owe(std::move(done), absl::OkStatus());

  const ConnId there = OtherEnd(conn);
  SimConnection::End& end = connection->ends[SideOf(there)];
  const SimNetworkState::HostPair link = LinkTo(*connection, there);
  SimNetwork::Fate fate;
  const bool heard_by_any = network_->tap != nullptr || network_->director != nullptr;
  if (heard_by_any && prefix.kind == Kind::kData) {
    const Overheard heard(link.first, link.second, {id_, conn}, packet->Content());
    packet->name = heard.name();
    if (network_->tap != nullptr) network_->tap(heard);
    if (network_->director != nullptr) fate = network_->director(heard);
  }
  if (fate.lost) return;
  const LinkFaults& faults = network_->FaultsOf(link);
  if (network_->IsCut(link)) {
    ++network_->faulted.cut;
    return;
  }
  if (network_->Strikes(faults.drop_probability)) {
    ++network_->faulted.dropped;
    network_->world->Trace(absl::StrCat("net drop ", link.first, ">", link.second, " #", conn));
    return;
  }
  SimConnection::End& here = connection->ends[SideOf(conn)];
  ++here.nic->traffic.frames_out;
  here.nic->traffic.bytes_out += packet->bytes;
  SimNetworkState::Trip trip = network_->Leave(link, packet->bytes, here, &end);
  const auto reordering_delay = [this, &faults] {
    return network_->Uniform(absl::ZeroDuration(), faults.reorder_delay);
  };
  const auto put_off = [](const SimNetworkState::Trip& from, absl::Duration by) {
    return SimNetworkState::Trip{from.first + by, from.last + by};
  };
  if (network_->Strikes(faults.reorder_probability)) {
    ++network_->faulted.reordered;
    trip = put_off(trip, reordering_delay());
  }
  trip = put_off(trip, fate.delay);
  const auto arrive = [there, packet](SimNetworkState& network) {
    ArrivePacket(network, there, packet);
  };
  if (network_->Strikes(faults.duplicate_probability)) {
    ++network_->faulted.duplicated;
    network_->Arrive(put_off(trip, reordering_delay()), packet->bytes, end.nic, arrive);
  }
  if (fate.repeat > absl::ZeroDuration()) {
    network_->Arrive(put_off(trip, fate.repeat), packet->bytes, end.nic, arrive);
  }
  network_->Arrive(trip, packet->bytes, end.nic, arrive);
}

void SimTransport::ArrivePacket(SimNetworkState& network, ConnId conn,
                                const std::shared_ptr<const Packet>& packet) {
  SimConnection* connection = FindConnection(network, conn);
  if (connection == nullptr) return;
  const SimNetworkState::HostPair link = LinkTo(*connection, conn);
  if (network.IsCut(link)) {
    ++network.faulted.cut;
    return;
  }
  const SimConnection::End& end = connection->ends[SideOf(conn)];
  ++end.nic->traffic.frames_in;
  end.nic->traffic.bytes_in += packet->bytes;
  SimTransport* transport = end.transport;
  if (transport == nullptr) return SendClose(network, OtherEnd(conn), "connection reset");
  network.world->Trace(absl::StrCat("net ", link.first, ">", link.second, " #", conn, " ",
                                    packet->Name(), " ", packet->head.size(), "+",
                                    packet->bytes - packet->head.size()));
  transport->OnLoop(conn, [conn, packet](SimTransport& self) { self.Deliver(conn, packet); });
}

// A message of one frame that is received in place. Frames of any size are, so that simulated
// messages take the path that large ones take over TCP.
struct SimTransport::Landed {
  std::shared_ptr<const PostedReceive> place;
  Buffer frame;
  std::size_t half() const { return frame.size() / 2; }

  void TakeFirstHalf() const { std::copy_n(frame.data(), half(), place->to()); }

  // The whole frame, in place. If the memory was revoked meanwhile, its first half is lost.
  Buffer TakeRest() const {
    if (std::byte* const to = place->to()) {
      std::copy_n(frame.data() + half(), frame.size() - half(), to + half());
      return Buffer::Unowned(to, frame.size());
    }
    std::byte* data = nullptr;
    Buffer rest = Buffer::Allocate(frame.size(), &data);
    std::fill_n(data, half(), std::byte{0});
    std::copy_n(frame.data() + half(), frame.size() - half(), data + half());
    return rest;
  }
};

void SimTransport::Deliver(ConnId conn, const std::shared_ptr<const Packet>& packet) {
  if (packet->payload.size() != 1) return HandOver(conn, *packet, packet->payload);
  const Buffer& frame = packet->payload[0];
  const Landed landed{events_->PostedFor(conn, packet->head, frame.size()), frame};
  if (landed.place == nullptr) return HandOver(conn, *packet, packet->payload);
  landed.TakeFirstHalf();
  const auto finish = [conn, packet, landed](SimTransport& self) {
    self.HandOver(conn, *packet, {landed.TakeRest()});
  };
  SimConnection* const connection = FindConnection(*network_, conn);
  if (connection == nullptr) return finish(*this);
  const LinkFaults& faults = network_->FaultsOf(LinkTo(*connection, conn));
  if (!network_->Strikes(faults.reorder_probability)) return finish(*this);
  // The frame stops in its middle for a while.
  ++network_->faulted.reordered;
  network_->Schedule(network_->Uniform(absl::ZeroDuration(), faults.reorder_delay),
                     [this, conn, alive = lifetime_.watch(), finish](SimNetworkState&) {
                       if (alive && !dead_) OnLoop(conn, finish);
                     });
}

void SimTransport::HandOver(ConnId conn, const Packet& packet, Frames payload) {
  Arrival arrival;
  arrival.head = packet.head;
  arrival.frames = payload.size() + 1;
  arrival.payload = std::move(payload);
  events_->OnArrival(conn, std::move(arrival));
}

void SimTransport::SendClose(SimNetworkState& network, ConnId conn, const std::string& why) {
  SimConnection* connection = FindConnection(network, conn);
  if (connection == nullptr) return;
  const SimNetworkState::HostPair link = LinkTo(*connection, conn);
  if (network.IsCut(link)) return;
  Carry(network, connection, conn,
        [conn, why](SimNetworkState& net) { ArriveClose(net, conn, why); });
}

void SimTransport::ArriveClose(SimNetworkState& network, ConnId conn, const std::string& why) {
  SimConnection* connection = FindConnection(network, conn);
  if (connection == nullptr || network.IsCut(LinkTo(*connection, conn))) return;
  SimTransport* transport = connection->ends[SideOf(conn)].transport;
  if (transport == nullptr) return;
  transport->OnLoop(conn, [conn, why](SimTransport& self) {
    self.DropEnd(conn);
    self.events_->OnClosed(conn, absl::UnavailableError(why));
  });
}

void SimTransport::Break(SimNetworkState& network, ConnId conn) {
  for (const ConnId end : {conn, OtherEnd(conn)}) {
    ArriveClose(network, end, "the connection broke");
  }
}

void SimTransport::DropEnd(ConnId conn) {
  conns_.erase(conn);
  SimConnection* connection = FindConnection(*network_, conn);
  if (connection == nullptr) return;
  connection->ends[SideOf(conn)].transport = nullptr;
  if (connection->ends[1 - SideOf(conn)].transport == nullptr) {
    network_->connections.erase(conn >> 1);
  }
}

void SimTransport::Close(ConnId conn) {
  if (!conns_.contains(conn)) return;
  SendClose(*network_, OtherEnd(conn), "the other side closed the connection");
  DropEnd(conn);
}

void SimTransport::Die() {
  for (const std::string& address : listening_) network_->listeners.erase(address);
  while (!conns_.empty()) Close(*conns_.begin());
  network_->transports.erase({id_, this});
  dead_ = true;
}

std::string SimTransport::AddressOf(ConnId conn) const {
  const SimConnection* connection = FindConnection(*network_, conn);
  if (connection == nullptr) return std::string();
  return absl::StrCat("sim://", connection->ends[1 - SideOf(conn)].host, "#", conn >> 1);
}

void SimTransport::OnLoop(ConnId conn, std::function<void(SimTransport&)> what) {
  loop_->Post([this, conn, alive = lifetime_.watch(), what = std::move(what)] {
    if (alive && conns_.contains(conn)) what(*this);
  });
}

void SimTransport::Owe(SendDone done, absl::Status status) {
  owed_.Add(std::move(done), std::move(status));
  if (owed_.empty() || owed_posted_) return;
  owed_posted_ = true;
  loop_->Post([this, alive = lifetime_.watch()] {
    if (!alive) return;
    owed_posted_ = false;
    owed_.RunAll();
  });
}

std::unique_ptr<Transport> NewSimTransport(std::shared_ptr<SimNetworkState> network,
                                           std::string host, runtime::Loop* loop) {
  return std::make_unique<SimTransport>(std::move(network), std::move(host), loop);
}

}  // namespace leeway::van
