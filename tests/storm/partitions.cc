// The network between nodes breaks, in one or both directions, for shorter and for longer than the
// failure timeout.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/network.h"
#include "tests/storm/storm.h"

namespace leeway::storm {
namespace {

constexpr std::uint32_t kPartitionedServers = 3;
constexpr absl::Duration kShort = absl::Milliseconds(1500);
constexpr absl::Duration kPartitionRound = absl::Seconds(12);  // of the training, at least
const absl::Duration kLong = 2 * Cluster::kFailureTimeout;

enum class Dies { kNobody, kVictim, kMayBe };

struct Break {
  std::string what;
  std::string victim;               // "server 1"
  std::vector<std::string> others;  // the nodes that it is cut off from
  bool sends = true, hears = true;  // the directions that are cut
  absl::Duration lasts;
  Dies dies = Dies::kNobody;
};

std::vector<std::string> Servers() { return {"server 0", "server 1", "server 2"}; }
std::vector<std::string> Workers() { return {"worker 0", "worker 1", "worker 2", "worker 3"}; }

std::vector<std::string> AllBut(const std::string& one) {
  std::vector<std::string> all = {"scheduler"};
  for (const std::string& server : Servers()) all.push_back(server);
  for (const std::string& worker : Workers()) all.push_back(worker);
  std::erase(all, one);
  return all;
}

std::vector<Break> Breaks() {
  return {
      {"a server is alone for 1.5 s", "server 0", AllBut("server 0"), true, true, kShort,
       Dies::kNobody},
      {"a server is alone for 6 s", "server 1", AllBut("server 1"), true, true, kLong,
       Dies::kVictim},
      {"nobody hears a server for 6 s", "server 2", AllBut("server 2"), true, false, kLong,
       Dies::kVictim},
      {"a server hears nobody for 6 s", "server 0", AllBut("server 0"), false, true, kLong,
       Dies::kMayBe},
      {"two servers do not reach each other for 1.5 s",
       "server 0",
       {"server 1"},
       true,
       true,
       kShort,
       Dies::kNobody},
      {"two servers do not reach each other for 6 s",
       "server 1",
       {"server 2"},
       true,
       true,
       kLong,
       Dies::kNobody},
      {"a server does not hear another for 6 s",
       "server 2",
       {"server 0"},
       false,
       true,
       kLong,
       Dies::kNobody},
      {"a server and the workers do not reach each other for 6 s", "server 0", Workers(), true,
       true, kLong, Dies::kNobody},
      {"a server and the scheduler do not reach each other for 6 s",
       "server 1",
       {"scheduler"},
       true,
       true,
       kLong,
       Dies::kVictim},
      {"the scheduler is alone for 1.5 s", "scheduler", AllBut("scheduler"), true, true, kShort,
       Dies::kNobody},
      {"the scheduler is alone for 6 s", "scheduler", AllBut("scheduler"), true, true, kLong,
       Dies::kNobody},
  };
}

class PartitionStorm {
 public:
  PartitionStorm(const StormOptions& options, const std::string& mode, Network* network)
      : network_(network), breaks_(Breaks()), options_(options), cluster_(Clusters(mode)) {}

  absl::Status Run() {
    LEEWAY_RETURN_IF_ERROR(cluster_.Start());
    for (std::size_t i = 0; i < breaks_.size(); ++i) {
      const double steps_left =
          static_cast<double>(options_.steps - cluster_.acknowledged().StepsDone());
      cluster_.pace().Set(kPartitionRound * static_cast<double>(breaks_.size() - i) / steps_left);
      const absl::Status held = Suffer(breaks_[i]);
      if (!held.ok()) {
        return absl::Status(held.code(), absl::StrCat(breaks_[i].what, ": ", held.message()));
      }
    }
    if (cluster_.acknowledged().StepsDone() >= options_.steps) {
      return absl::FailedPreconditionError("the training was over early: it needs more --steps");
    }
    return Finish(&cluster_);
  }

 private:
  ClusterOptions Clusters(const std::string& mode) {
    ClusterOptions wanted = ClusterFor(options_, mode, "partitions");
    wanted.inside = [this](const std::string& name) { return network_->Inside(name); };
    wanted.host = [this](const std::string& name) { return network_->AddressOf(name); };
    return wanted;
  }

  absl::Status Suffer(const Break& wound) {
    const std::size_t deaths = cluster_.deaths().size();
    std::optional<std::uint32_t> server;
    if (wound.victim.starts_with("server ")) {
      server = static_cast<std::uint32_t>(wound.victim.back() - '0');
    }
    Child* victim = server.has_value() ? cluster_.ServerOf(*server) : nullptr;
    if (wound.dies != Dies::kNobody) cluster_.Expect(victim);
    const absl::Time begin = absl::Now();
    LEEWAY_RETURN_IF_ERROR(ForAll(wound, &Network::Cut));
    LEEWAY_RETURN_IF_ERROR(cluster_.Await("", absl::InfiniteDuration(),
                                          [&] { return absl::Now() >= begin + wound.lasts; }));
    LEEWAY_RETURN_IF_ERROR(ForAll(wound, &Network::Mend));
    // Decisions during the partition are known by then.
    const absl::Time mended = absl::Now();
    LEEWAY_RETURN_IF_ERROR(cluster_.Await("", absl::InfiniteDuration(),
                                          [&] { return absl::Now() >= mended + kShort; }));
    const bool died = cluster_.deaths().size() > deaths;
    if (died && wound.dies == Dies::kNobody) {
      const Death& death = cluster_.deaths()[deaths];
      return absl::InternalError(absl::StrCat(death.who, " is dead: ", death.why));
    }
    if (!died && wound.dies == Dies::kVictim) {
      return absl::InternalError(absl::StrCat(wound.victim, " was not found dead"));
    }
    if (died) {
      LEEWAY_RETURN_IF_ERROR(cluster_.Await(absl::StrCat(wound.victim, ", which was deposed, ends"),
                                            absl::Seconds(30), [&] { return !victim->running(); }));
      LEEWAY_RETURN_IF_ERROR(
          cluster_.StartServer({{"LEEWAY_RANK", absl::StrCat(*server)}}).status());
    }
    LEEWAY_RETURN_IF_ERROR(cluster_.AwaitWhole(kPartitionedServers));
    const std::uint64_t then = cluster_.acknowledged().StepsDone();
    LEEWAY_RETURN_IF_ERROR(cluster_.Await("training goes on", absl::Seconds(30), [&] {
      return cluster_.acknowledged().StepsDone() > then + 5;
    }));
    PrintRow(wound.what,
             absl::StrFormat(
                 "%s; longest wait %.1f s", died ? "declared dead" : "nobody died",
                 absl::ToDoubleSeconds(cluster_.acknowledged().LongestWait(begin, absl::Now()))));
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status ForAll(const Break& wound,
                      absl::Status (Network::*what)(const std::string&, const std::string&)) {
    for (const std::string& other : wound.others) {
      if (wound.sends) {
        LEEWAY_RETURN_IF_ERROR((network_->*what)(wound.victim, other));
      }
      if (wound.hears) {
        LEEWAY_RETURN_IF_ERROR((network_->*what)(other, wound.victim));
      }
    }
    return absl::OkStatus();
  }

  Network* const network_;
  const std::vector<Break> breaks_;
  const StormOptions& options_;
  Cluster cluster_;
};

}  // namespace

absl::Status RunPartitions(const StormOptions& options) {
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<Network> network, Network::Make(AllBut("")));
  for (const std::string& mode : options.modes) {
    std::printf("\n%s, the network breaks\n", mode.c_str());
    std::fflush(stdout);
    LEEWAY_RETURN_IF_ERROR(PartitionStorm(options, mode, network.get()).Run());
  }
  return absl::OkStatus();
}

}  // namespace leeway::storm
