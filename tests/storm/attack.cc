#include "tests/storm/attack.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "runtime/base/unique_fd.h"
#include "tests/malformed/attack_parts.h"
#include "tests/storm/every_message.h"
#include "tests/storm/hostile_peer.h"

namespace leeway::storm {
namespace {

using runtime::UniqueFd;

bool Waits() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN; }

// What to say, and what the process that says it is called.
using Speech = std::function<std::string(std::uint64_t incarnation)>;

// One connection at a time that sends without end.
class Flood {
 public:
  Flood(std::string address, Speech what, bool reads, const Guise& as)
      : address_(std::move(address)), what_(std::move(what)), reads_(reads), as_(as) {}

  pollfd Watch() {
    if (!fd_) {
      fd_ = Dial(address_);
      incarnation_ = NewIncarnation();
      waiting_ = Opening(as_, incarnation_);
      sent_ = 0;
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
      if (sent_ == waiting_.size()) {
        waiting_ = what_(incarnation_);
        sent_ = 0;
      }
      const ssize_t sent = ::send(fd_.get(), waiting_.data() + sent_, waiting_.size() - sent_,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && !Waits()) return Break();
      if (sent < 0) return;
      sent_ += static_cast<std::size_t>(sent);
    }
  }

 private:
  void Break() {
    fd_ = UniqueFd();
    ::poll(nullptr, 0, 1);
  }

  const std::string address_;
  const Speech what_;
  const bool reads_;
  const Guise as_;
  UniqueFd fd_;
  std::uint64_t incarnation_ = 0;
  std::string waiting_;
  std::size_t sent_ = 0;  // bytes of it
};

// Says to the storm that the attack begins: what it has to know is known.
void Begin() {
  std::fprintf(stderr, "%s\n", kAttacks);
  std::fflush(stderr);
}

void AllowManyFiles() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

int Run(const std::vector<std::unique_ptr<Flood>>& floods) {
  Begin();
  while (true) {
    std::vector<pollfd> watched;
    for (const auto& flood : floods) watched.push_back(flood->Watch());
    ::poll(watched.data(), watched.size(), -1);
    for (std::size_t i = 0; i < floods.size(); ++i) {
      if (watched[i].revents != 0) floods[i]->Go();
    }
  }
}

int FloodAll(const std::vector<std::string>& addresses, bool reads, const Speech& what,
             const Guise& as = {}) {
  std::vector<std::unique_ptr<Flood>> floods;
  for (const std::string& address : addresses) {
    for (int i = 0; i < 2; ++i) floods.push_back(std::make_unique<Flood>(address, what, reads, as));
  }
  return Run(floods);
}

// Messages of every type that nodes take from such a peer, over so many connections.
int FloodWithAll(const std::vector<std::string>& addresses, const KnownCluster& cluster, bool reads,
                 const Guise& as, std::size_t connections) {
  // What one server takes others do.
  EveryMessage to_scheduler(&cluster, as, Role::kScheduler);
  EveryMessage to_server(&cluster, as, Role::kServer);
  to_scheduler.LeaveOutRefused(addresses[0]);
  to_server.LeaveOutRefused(addresses[1]);
  std::fprintf(stderr, "says %zu types of messages to the scheduler and %zu to servers\n",
               to_scheduler.types(), to_server.types());
  AllowManyFiles();
  std::vector<std::unique_ptr<Flood>> floods;
  for (std::size_t i = 0; i < connections; ++i) {
    const std::size_t at = i % addresses.size();
    const EveryMessage* const all = at == 0 ? &to_scheduler : &to_server;
    floods.push_back(std::make_unique<Flood>(
        addresses[at], [all](std::uint64_t incarnation) { return all->Bytes(incarnation); }, reads,
        as));
  }
  return Run(floods);
}

// The same message, often.
Speech Repeated(const proto::AnyMessage& message) {
  std::string many;
  for (int i = 0; i < 500; ++i) many += Framed(message);
  return [many](std::uint64_t) { return many; };
}

// Messages that only members may send, or no peer; whole and damaged.
Speech Absurd() {
  auto forge = std::make_shared<tests::Forge>(tests::Forge{runtime::Random(7)});
  return [forge](std::uint64_t) {
    const std::vector<tests::ZmqAttack>& attacks = tests::ClusterAttacks();
    std::string bytes;
    for (const tests::Frames& frames : attacks[forge->random.Below(attacks.size())](*forge)) {
      bytes += Framed(frames);
    }
    return bytes;
  };
}

int Connect(const std::vector<std::string>& addresses) {
  Begin();
  while (true) {
    for (const std::string& address : addresses) {
      Dial(address);
      ::poll(nullptr, 0, 0);
    }
  }
}

// Opens so many connections that say hello and `more`, and sends nothing more. `again`: replaces
// the oldest ones without end.
int Idle(const std::vector<std::string>& addresses, std::size_t connections, const Guise& as,
         const std::string& more, bool again) {
  AllowManyFiles();
  Begin();
  std::vector<UniqueFd> idle;
  for (std::size_t i = 0;; ++i) {
    UniqueFd fd = Dial(addresses[i % addresses.size()]);
    pollfd up = {fd.get(), POLLOUT, 0};
    ::poll(&up, 1, 100);
    const std::string words = Opening(as, NewIncarnation()) + more;
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
      {"tool-all", "sends every type of message that nodes take from a tool, and reads"},
      {"tool-many", "the same over 1,000 connections at a time"},
      {"reader-status", "says the cluster's id as a reader, asks for the status, and reads"},
      {"reader-status-unread", "the same, and reads no answer"},
      {"reader-all", "sends every type of message that nodes take from a reader, and reads"},
      {"reader-all-unread", "the same, and reads no answer"},
      {"reader-many", "the same over 1,000 connections at a time, and reads"},
      {"joined-all", "the same as reader-all as a reader that has joined"},
      {"joined-all-unread", "the same, and reads no answer"},
      {"joined-many", "the same over 1,000 connections at a time, and reads"},
      {"worker-status", "says the cluster's id as a worker, asks for the status, and reads"},
      {"worker-status-unread", "the same, and reads no answer"},
      {"worker-all", "sends every type of message that nodes take from a worker that nobody knows"},
      {"worker-all-unread", "the same, and reads no answer"},
      {"worker-many", "the same over 1,000 connections at a time, and reads"},
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
  const Speech status = Repeated(proto::StatusRequest{1});
  if (name == "status-unread") return FloodAll(addresses, false, status);
  if (name == "status") return FloodAll(addresses, true, status);
  if (name == "joins") return FloodAll(addresses, true, Repeated(join));
  if (name == "heartbeats") return FloodAll(addresses, true, Repeated(proto::Heartbeat{}));
  if (name == "absurd") return FloodAll(addresses, true, Absurd());
  if (name == "connects") return Connect(addresses);
  if (name == "idle") return Idle(addresses, 5000, {}, "", /*again=*/true);
  const std::pair<std::string, std::string> words = absl::StrSplit(name, absl::MaxSplits('-', 1));
  const auto& [who, what] = words;
  const bool joined = who == "joined", reader = joined || who == "reader";
  if (!reader && who != "worker" && who != "tool") {
    std::fprintf(stderr, "there is no attack \"%s\"\n", name.c_str());
    return 2;
  }
  const absl::StatusOr<KnownCluster> cluster = LearnCluster(addresses[0]);
  if (!cluster.ok()) {
    std::fprintf(stderr, "%s\n", std::string(cluster.status().message()).c_str());
    return 2;
  }
  Guise as = {.role = Role::kTool};
  if (who != "tool") {
    as = {.role = reader ? Role::kReader : Role::kWorker, .cluster = cluster->id, .joins = joined};
  }
  const bool reads = !absl::EndsWith(what, "-unread");
  if (absl::StartsWith(what, "status")) return FloodAll(addresses, reads, status, as);
  if (what == "connects") {
    return Idle(addresses, 1500, as, Framed(proto::StatusRequest{1}), /*again=*/false);
  }
  return FloodWithAll(addresses, *cluster, reads, as, what == "many" ? 1000 : 2 * addresses.size());
}

}  // namespace leeway::storm
