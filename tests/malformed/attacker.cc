#include "tests/malformed/attacker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "proto/encoding/encoding.h"
#include "tests/malformed/attack_parts.h"
#include "van/session/envelope.h"

namespace leeway::tests {
namespace {

proto::Request DensePush() {
  proto::Request request;
  request.id = {.incarnation = 99, .sequence = 1, .worker = 0, .shard = 0};
  request.epoch = 1;
  request.table = 1;
  request.elements = 4;
  return request;
}

const std::string kFloats(16, '\0');

std::string BodyOf(const van::Message& message) {
  van::Envelope envelope;
  envelope.Add(message);
  envelope.Add(message);
  return std::string(envelope.Take().text());
}

std::string TwoPushes() {
  van::Message push;
  push.header = proto::Encode(DensePush());
  push.payload.push_back(runtime::Buffer::CopyOf(kFloats));
  return BodyOf(push);
}

std::string InEnvelope(const std::string& header) {
  van::Message message;
  message.header = runtime::Buffer::CopyOf(header);
  return BodyOf(message);
}

std::string Envelope(const std::string& body) {
  std::string frame = Data(DensePush(), 0).substr(0, van::kPrefixBytes);
  frame[4] = static_cast<char>(van::Kind::kEnvelope);
  return frame + body;
}

std::vector<ZmqAttack> SessionAttacks() {
  return {
      // An empty frame, without the van's prefix.
      [](Forge&) { return std::vector<Frames>{{""}}; },
      [](Forge& f) { return std::vector<Frames>{{f.Noise(f.random.Below(24))}}; },
      [](Forge& f) { return std::vector<Frames>{{f.Noise(24 + f.random.Below(500))}}; },
      // A damaged prefix.
      [](Forge& f) {
        std::string hello = Hello();
        const std::string damaged = f.FlipBit(hello.substr(0, 8));
        return std::vector<Frames>{{damaged + hello.substr(8)}};
      },
      // A wrong frame count.
      [](Forge&) {
        return std::vector<Frames>{{Hello(), "more"}};
      },
      // Data before any hello.
      [](Forge&) {
        return std::vector<Frames>{{Data(DensePush(), 1), kFloats}};
      },
      // Hellos: noise, cut, damaged, of another version, of another cluster, repeated with changes.
      [](Forge& f) {
        return std::vector<Frames>{{Hello().substr(0, van::kPrefixBytes) + f.Noise(60)}};
      },
      [](Forge& f) { return std::vector<Frames>{{f.Cut(Hello())}}; },
      [](Forge& f) { return std::vector<Frames>{{f.FlipBit(Hello(), van::kPrefixBytes)}}; },
      [](Forge&) {
        proto::Hello hello;
        hello.protocol = hello.protocol_min = 77;
        return std::vector<Frames>{{Hello(hello)}};
      },
      [](Forge&) {
        proto::Hello hello;
        hello.cluster = 12345;
        return std::vector<Frames>{{Hello(hello)}};
      },
      [](Forge&) {
        proto::Hello server;
        server.role = Role::kServer;
        return std::vector<Frames>{{Hello()}, {Hello(server)}};
      },
      // After a good hello: noise, cut and damaged headers.
      [](Forge& f) {
        const std::string prefix = Data(DensePush(), 0).substr(0, van::kPrefixBytes);
        return std::vector<Frames>{{Hello()}, {prefix + f.Noise(100)}};
      },
      [](Forge& f) {
        const std::string whole = Data(DensePush(), 1);
        return std::vector<Frames>{
            {Hello()},
            {whole.substr(0, van::kPrefixBytes) + f.Cut(whole.substr(van::kPrefixBytes)), kFloats}};
      },
      [](Forge& f) {
        return std::vector<Frames>{{Hello()},
                                   {f.FlipBit(Data(DensePush(), 1), van::kPrefixBytes), kFloats}};
      },
      // Envelopes: of noise, damaged, cut, and one within another.
      [](Forge& f) {
        return std::vector<Frames>{{Hello()}, {Envelope(f.Noise(8 * (1 + f.random.Below(100))))}};
      },
      [](Forge& f) {
        return std::vector<Frames>{{Hello()},
                                   {f.FlipBit(Envelope(TwoPushes()), van::kPrefixBytes)}};
      },
      [](Forge& f) {
        return std::vector<Frames>{{Hello()}, {Envelope(f.Cut(TwoPushes()))}};
      },
      [](Forge&) {
        return std::vector<Frames>{{Hello()}, {Envelope(InEnvelope(Envelope(TwoPushes())))}};
      },
      // A request with another worker's rank.
      [](Forge&) {
        return std::vector<Frames>{{Hello()}, {Data(DensePush(), 1), kFloats}};
      },
      // Payloads of the wrong size, missing, or too many.
      [](Forge& f) {
        return std::vector<Frames>{{Hello()}, {Data(DensePush(), 1), f.Noise(f.random.Below(64))}};
      },
      [](Forge&) {
        return std::vector<Frames>{{Hello()}, {Data(DensePush(), 0)}};
      },
      [](Forge&) {
        Frames frames(40, "x");
        frames[0] = Data(DensePush(), 39);
        return std::vector<Frames>{{Hello()}, frames};
      },
      // Counts beyond any memory.
      [](Forge&) {
        proto::Request request = DensePush();
        request.kind = TableKind::kSparse;
        request.keys = 1ull << 61;
        request.elements = 1ull << 62;
        return std::vector<Frames>{{Hello()}, {Data(request, 2), "12345678", kFloats}};
      },
      // Messages that a sender of this role may not send.
      [](Forge&) {
        return std::vector<Frames>{{Hello()}, {Data(proto::MapAck{.version = 9}, 0)}};
      },
      [](Forge&) {
        proto::Join join;
        join.role = Role::kWorker;
        join.host = "elsewhere";
        join.num_servers = join.num_workers = 100;
        return std::vector<Frames>{{Hello()}, {Data(join, 0)}};
      },
      [](Forge&) {
        proto::ClockTick tick;
        tick.clock = ~0ull;
        tick.watermarks.push_back({.sequence = ~0ull, .shard = 3});
        return std::vector<Frames>{{Hello()}, {Data(tick, 0)}};
      },
      [](Forge&) {
        return std::vector<Frames>{{Hello()}, {Data(proto::Shutdown{}, 0)}};
      },
  };
}

const std::vector<ZmqAttack>& ZmqAttacks() {
  static const auto* const attacks = [] {
    auto* const all = new std::vector<ZmqAttack>(SessionAttacks());
    for (ZmqAttack& attack : ClusterAttacks()) all->push_back(std::move(attack));
    return all;
  }();
  return *attacks;
}

// Bytes on a bare TCP connection.
using TcpAttack = std::function<std::string(Forge&)>;

const std::string kGreeting =
    std::string("\xff\0\0\0\0\0\0\0\0\x7f\x03\x01NULL", 16) + std::string(48, '\0');

const std::vector<TcpAttack>& TcpAttacks() {
  static const auto* const attacks = new std::vector<TcpAttack>{
      [](Forge& f) { return f.Noise(1 + f.random.Below(2000)); },
      [](Forge& f) { return f.Cut(kGreeting); },
      [](Forge& f) { return kGreeting + f.Noise(200); },
      [](Forge&) { return kGreeting + std::string("\x06\x7f\xff\xff\xff\xff\xff\xff\xff", 9); },
      [](Forge&) { return std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); },
  };
  return *attacks;
}

bool SendOverTcp(const std::string& address, const std::string& bytes) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  inet_pton(AF_INET, address.substr(6, colon - 6).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  if (connected) {
    // The other side may have closed the connection already.
    [[maybe_unused]] const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  close(fd);
  return connected;
}

}  // namespace

struct Attacker::State {
  // A context has a limit of sockets, and keeps closed ones until all is sent.
  static constexpr int kSocketsAtOnce = 200;

  void* NewSocket() {
    if (context != nullptr && sockets == kSocketsAtOnce) EndContext();
    if (context == nullptr) context = zmq_ctx_new();
    ++sockets;
    return zmq_socket(context, ZMQ_DEALER);
  }
  // Returns once everything has been sent.
  void EndContext() {
    if (context != nullptr) zmq_ctx_term(context);
    context = nullptr;
    sockets = 0;
  }

  Forge forge;
  void* context = nullptr;
  int sockets = 0;
};

int AttackKinds() { return static_cast<int>(TcpAttacks().size() + ZmqAttacks().size()); }

Attacker::Attacker(std::uint64_t seed) : state_(new State{.forge = {runtime::Random(seed)}}) {}

Attacker::~Attacker() {
  state_->EndContext();
  delete state_;
}

bool Attacker::Attack(int kind, const std::string& address) {
  const int tcp_kinds = static_cast<int>(TcpAttacks().size());
  if (kind < tcp_kinds) {
    return SendOverTcp(address, TcpAttacks()[static_cast<std::size_t>(kind)](state_->forge));
  }
  void* socket = state_->NewSocket();
  if (socket == nullptr) return false;
  const int linger_ms = 5000;
  zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
  bool good = zmq_connect(socket, address.c_str()) == 0;
  for (const Frames& frames :
       ZmqAttacks()[static_cast<std::size_t>(kind - tcp_kinds)](state_->forge)) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
      // Without a checksum.
      const std::string frame = i == 0 ? frames[i] + std::string(4, '\0') : frames[i];
      good = good && zmq_send(socket, frame.data(), frame.size(), flags) >= 0;
    }
  }
  zmq_close(socket);
  return good;
}

}  // namespace leeway::tests
