#include "tests/storm/attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/unique_fd.h"
#include "tests/malformed/attack_parts.h"
#include "van/tcp/tcp_format.h"

namespace leeway::storm {
namespace {

using runtime::UniqueFd;

std::string TextOf(const auto& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// A message as it goes over TCP: its frames, without checksums.
std::string Framed(const tests::Frames& frames) {
  const auto number = [](auto value) {
    std::string bytes(sizeof(value), '\0');
    van::Put(value, reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
  };
  const std::string none(van::kTcpChecksumBytes, '\0');
  std::string bytes =
      absl::StrCat(number(static_cast<std::uint32_t>(frames[0].size())),
                   number(static_cast<std::uint32_t>(frames.size() - 1)), none, frames[0], none);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    absl::StrAppend(&bytes, number(std::uint64_t{frames[i].size()}), none, frames[i], none);
  }
  return bytes;
}

// How an attacker introduces itself.
struct Guise {
  Role role = Role::kTool;
  std::uint64_t cluster = 0;  // the id that it says
};

// Each connection is another process's, as far as its peer can tell.
std::string Opening(const Guise& as = {}) {
  static std::uint64_t incarnation = 1'000'000;
  return TextOf(van::TcpGreeting()) +
         Framed({tests::Hello(
             {.role = as.role, .incarnation = ++incarnation, .cluster = as.cluster})});
}

UniqueFd Dial(const std::string& address) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::StripPrefix(address, "tcp://"), absl::MaxSplits(':', 1));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) return {};
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  return fd;
}

bool Waits() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN; }

// Takes the first whole message of one frame out of `*bytes`; empty: it has not come yet.
std::string TakeFrame(std::string* bytes) {
  std::uint32_t size = 0;
  if (bytes->size() < van::kTcpRecordBytes) return "";
  std::memcpy(&size, bytes->data(), sizeof(size));
  const std::size_t all = van::kTcpRecordBytes + size + van::kTcpChecksumBytes;
  if (bytes->size() < all) return "";
  std::string frame = bytes->substr(van::kTcpRecordBytes, size);
  bytes->erase(0, all);
  return frame;
}

// Joins at the scheduler as a reader, which anybody may, and so learns the cluster's id. 0: it
// cannot.
std::uint64_t LearnCluster(const std::string& scheduler) {
  const UniqueFd fd = Dial(scheduler);
  pollfd up = {fd.get(), POLLOUT, 0};
  ::poll(&up, 1, 1000);
  proto::Join join;
  join.role = Role::kReader;
  const std::string words =
      Opening({.role = Role::kReader}) + Framed({tests::Data(proto::AnyMessage(join), 0)});
  ::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL);
  std::string heard;
  bool greeted = false;
  for (int i = 0; i < 100; ++i) {
    pollfd in = {fd.get(), POLLIN, 0};
    ::poll(&in, 1, 100);
    char bytes[65536];
    const ssize_t got = ::recv(fd.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) heard.append(bytes, static_cast<std::size_t>(got));
    if (!greeted && heard.size() >= van::kTcpGreetingBytes) {
      heard.erase(0, van::kTcpGreetingBytes);
      greeted = true;
    }
    for (std::string frame = greeted ? TakeFrame(&heard) : ""; !frame.empty();
         frame = TakeFrame(&heard)) {
      const auto message = proto::Decode(
          runtime::Buffer::CopyOf(absl::string_view(frame).substr(van::kPrefixBytes)), {});
      if (!message.ok()) continue;
      if (const auto* welcome = std::get_if<proto::Welcome>(&*message)) return welcome->cluster;
    }
  }
  return 0;
}

// One connection that sends without end.
class Flood {
 public:
  Flood(std::string address, std::function<std::string()> what, bool reads, const Guise& as)
      : address_(std::move(address)), what_(std::move(what)), reads_(reads), as_(as) {}

  pollfd Watch() {
    if (!fd_) {
      fd_ = Dial(address_);
      waiting_ = Opening(as_);
    }
    return {fd_.get(), static_cast<short>(POLLOUT | (reads_ ? POLLIN : 0)), 0};
  }
  void Go() {
    char answers[65536];
    while (reads_) {
      const ssize_t got = ::recv(fd_.get(), answers, sizeof(answers), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && !Waits())) return Break();
      if (got < 0) break;
    }
    for (int i = 0; i < 16; ++i) {
      if (waiting_.empty()) waiting_ = what_();
      const ssize_t sent =
          ::send(fd_.get(), waiting_.data(), waiting_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && !Waits()) return Break();
      if (sent < 0) return;
      waiting_.erase(0, static_cast<std::size_t>(sent));
    }
  }

 private:
  void Break() {
    fd_ = UniqueFd();
    ::poll(nullptr, 0, 1);
  }

  const std::string address_;
  const std::function<std::string()> what_;
  const bool reads_;
  const Guise as_;
  UniqueFd fd_;
  std::string waiting_;
};

int FloodAll(const std::vector<std::string>& addresses, bool reads,
             const std::function<std::string()>& what, const Guise& as = {}) {
  std::vector<std::unique_ptr<Flood>> floods;
  for (const std::string& address : addresses) {
    for (int i = 0; i < 2; ++i) floods.push_back(std::make_unique<Flood>(address, what, reads, as));
  }
  while (true) {
    std::vector<pollfd> watched;
    for (const auto& flood : floods) watched.push_back(flood->Watch());
    ::poll(watched.data(), watched.size(), -1);
    for (std::size_t i = 0; i < floods.size(); ++i) {
      if (watched[i].revents != 0) floods[i]->Go();
    }
  }
}

// The same message, often.
std::function<std::string()> Repeated(const proto::AnyMessage& message) {
  std::string many;
  for (int i = 0; i < 500; ++i) many += Framed({tests::Data(message, 0)});
  return [many] { return many; };
}

// Messages that only members may send, or no peer; whole and damaged.
std::function<std::string()> Absurd() {
  auto forge = std::make_shared<tests::Forge>(tests::Forge{runtime::Random(7)});
  return [forge] {
    const std::vector<tests::ZmqAttack>& attacks = tests::ClusterAttacks();
    std::string bytes;
    for (const tests::Frames& frames : attacks[forge->random.Below(attacks.size())](*forge)) {
      bytes += Framed(frames);
    }
    return bytes;
  };
}

int Connect(const std::vector<std::string>& addresses) {
  while (true) {
    for (const std::string& address : addresses) {
      Dial(address);
      ::poll(nullptr, 0, 0);
    }
  }
}

// Each type of request that clients send, again and again. None names a table that there is.
std::function<std::string()> EveryRequest() {
  std::string all;
  proto::Request pull;
  pull.op = proto::Op::kPull;
  pull.table = 1;
  for (const proto::AnyMessage& message :
       {proto::AnyMessage(proto::StatusRequest{1}), proto::AnyMessage(pull),
        proto::AnyMessage(proto::EnterClock{}), proto::AnyMessage(proto::ClockTick{}),
        proto::AnyMessage(proto::OpenTable{.request = 1, .name = "t"}),
        proto::AnyMessage(proto::Heartbeat{}), proto::AnyMessage(proto::MapAck{}),
        proto::AnyMessage(proto::BarrierEnter{.name = "b"})}) {
    for (int i = 0; i < 20; ++i) all += Framed({tests::Data(message, 0)});
  }
  return [all] { return all; };
}

// Opens so many connections that say hello and `more`, and sends nothing more. `again`: replaces
// the oldest ones without end.
int Idle(const std::vector<std::string>& addresses, std::size_t connections, const Guise& as,
         const std::string& more, bool again) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<UniqueFd> idle;
  for (std::size_t i = 0;; ++i) {
    UniqueFd fd = Dial(addresses[i % addresses.size()]);
    pollfd up = {fd.get(), POLLOUT, 0};
    ::poll(&up, 1, 100);
    const std::string words = Opening(as) + more;
    ::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (idle.size() < connections) {
      idle.push_back(std::move(fd));
    } else {
      idle[i % connections] = std::move(fd);
    }
    while (idle.size() == connections && !again) ::pause();
  }
}

}  // namespace

const std::vector<Attack>& Attacks() {
  static const std::vector<Attack> attacks = {
      {"status-unread", "asks for the status without end, and reads no answer"},
      {"status", "asks for the status without end, and reads"},
      {"joins", "asks to join without end"},
      {"heartbeats", "sends heartbeats of nobody without end"},
      {"absurd", "says what only members may say, or nobody; comes again when it is dropped"},
      {"connects", "connects and breaks off, without end", true},
      {"idle", "opens 5,000 connections, says hello, and is silent", true},
      {"reader-status", "says the cluster's id as a reader, asks for the status, and reads"},
      {"reader-status-unread", "the same, and reads no answer"},
      {"reader-all", "sends every type of request as a reader, and reads"},
      {"reader-all-unread", "the same, and reads no answer"},
      {"worker-status", "says the cluster's id as a worker, asks for the status, and reads"},
      {"worker-status-unread", "the same, and reads no answer"},
      {"worker-all", "sends every type of request as a worker that nobody knows, and reads"},
      {"worker-all-unread", "the same, and reads no answer"},
      {"reader-connects", "opens 1,500 connections as readers, keeps them, asks once over each"},
      {"worker-connects", "the same as workers that nobody knows"},
  };
  return attacks;
}

int RunAttack(const std::string& name, const std::vector<std::string>& addresses) {
  ::setpriority(PRIO_PROCESS, 0, 19);  // its own CPU time is not part of the measurement
  proto::Join join;
  join.role = Role::kWorker;
  join.host = "127.0.0.1";
  if (name == "status-unread") {
    return FloodAll(addresses, false, Repeated(proto::StatusRequest{1}));
  }
  if (name == "status") return FloodAll(addresses, true, Repeated(proto::StatusRequest{1}));
  if (name == "joins") return FloodAll(addresses, true, Repeated(join));
  if (name == "heartbeats") return FloodAll(addresses, true, Repeated(proto::Heartbeat{}));
  if (name == "absurd") return FloodAll(addresses, true, Absurd());
  if (name == "connects") return Connect(addresses);
  if (name == "idle") return Idle(addresses, 5000, {}, "", /*again=*/true);
  const bool is_reader = absl::StartsWith(name, "reader-");
  if (is_reader || absl::StartsWith(name, "worker-")) {
    const Guise as = {.role = is_reader ? Role::kReader : Role::kWorker,
                      .cluster = LearnCluster(addresses[0])};
    if (as.cluster == 0) {
      std::fprintf(stderr, "the cluster's id cannot be learnt\n");
      return 2;
    }
    const auto status = Repeated(proto::StatusRequest{1});
    const bool reads = !absl::EndsWith(name, "-unread");
    if (absl::EndsWith(name, "-connects")) {
      return Idle(addresses, 1500, as, Framed({tests::Data(proto::StatusRequest{1}, 0)}),
                  /*again=*/false);
    }
    return FloodAll(addresses, reads, absl::StrContains(name, "-status") ? status : EveryRequest(),
                    as);
  }
  std::fprintf(stderr, "there is no attack \"%s\"\n", name.c_str());
  return 2;
}

}  // namespace leeway::storm
