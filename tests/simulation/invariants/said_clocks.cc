#include "tests/simulation/invariants/said_clocks.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"

namespace leeway::simulation {

std::string SaidClocks::Hear(const van::Overheard& heard) {
  const auto from = [&](Role role) { return absl::StartsWith(heard.from, Name(role)); };
  if (from(Role::kWorker)) {
    if (const auto* tick = std::get_if<proto::ClockTick>(&heard.message))
      return OnTick(heard, *tick);
    if (const auto* ack = std::get_if<proto::MapAck>(&heard.message)) {
      return OnWorkersClock(heard, ack->clock);
    }
    if (const auto* report = std::get_if<proto::CodecReport>(&heard.message)) {
      return OnWorkersClock(heard, report->clock);
    }
    if (const auto* request = std::get_if<proto::Request>(&heard.message)) {
      return OnRequest(*request);
    }
    if (const auto* batch = std::get_if<proto::PushBatch>(&heard.message)) return OnBatch(*batch);
  } else if (from(Role::kServer)) {
    if (const auto* ack = std::get_if<proto::ClockAck>(&heard.message)) return OnAck(heard, *ack);
  } else if (from(Role::kScheduler)) {
    if (const auto* map = std::get_if<proto::ClusterMap>(&heard.message)) return OnMap(heard, *map);
    if (const auto* cut = std::get_if<proto::CheckpointCut>(&heard.message)) return OnCut(*cut);
    if (const auto* welcome = std::get_if<proto::Welcome>(&heard.message)) {
      return OnWelcome(*welcome);
    }
  }
  return "";
}

std::string SaidClocks::OnTick(const van::Overheard& heard, const proto::ClockTick& tick) {
  const auto [known, first] = ticks_.try_emplace({{tick.worker, tick.incarnation}, heard.way},
                                                 Ticks{tick.clock, tick.since});
  Ticks& last = known->second;
  if (tick.clock < last.clock || tick.since != last.since) {
    return absl::StrCat("worker ", tick.worker, " ticks clock ", tick.clock, ", having begun at ",
                        tick.since, ", after clock ", last.clock, ", having begun at ", last.since);
  }
  last.clock = tick.clock;
  return "";
}

std::string SaidClocks::OnWorkersClock(const van::Overheard& heard, std::uint64_t clock) {
  std::uint64_t& last = told_[heard.way];
  if (clock < last) {
    return absl::StrCat(heard.from, " says in a ", heard.name(), " that it is at clock ", clock,
                        ", after clock ", last);
  }
  last = clock;
  return "";
}

std::string SaidClocks::OnRequest(const proto::Request& request) {
  const proto::RequestId& id = request.id;
  auto& clocks = requests_[{id.worker, id.incarnation, id.shard}];
  const auto [here, first] = clocks.try_emplace(id.sequence, request.clock);
  const auto wrong = [&](std::uint64_t number, std::uint64_t clock) {
    return absl::StrCat("request ", id.sequence, " of worker ", id.worker, " to shard ", id.shard,
                        " is of clock ", request.clock, ", and request ", number, " of clock ",
                        clock);
  };
  if (!first) return here->second == request.clock ? "" : wrong(here->first, here->second);
  if (here != clocks.begin()) {
    const auto& [number, clock] = *std::prev(here);
    if (clock > request.clock) return wrong(number, clock);
  }
  if (std::next(here) != clocks.end()) {
    const auto& [number, clock] = *std::next(here);
    if (clock < request.clock) return wrong(number, clock);
  }
  return "";
}

std::string SaidClocks::OnBatch(const proto::PushBatch& batch) {
  for (const proto::BatchedPush& push : batch.pushes) {
    std::string wrong = OnRequest(proto::RequestOf(batch, push));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string SaidClocks::OnAck(const van::Overheard& heard, const proto::ClockAck& ack) {
  auto& [epoch, stable] = stable_[heard.way];
  if (ack.epoch < epoch || (ack.epoch == epoch && ack.stable < stable)) {
    return absl::StrCat(heard.from, " says in epoch ", ack.epoch, " that clocks below ", ack.stable,
                        " are stable, after those below ", stable, " in epoch ", epoch);
  }
  epoch = ack.epoch;
  stable = ack.stable;
  return "";
}

std::string SaidClocks::OnMap(const van::Overheard& heard, const proto::ClusterMap& map) {
  const auto [known, first] = maps_.try_emplace(map.version, map);
  if (!first && !(known->second == map)) {
    return absl::StrCat("two maps have version ", map.version);
  }
  if (first && known != maps_.begin() && std::prev(known)->second.epoch > map.epoch) {
    return absl::StrCat("the map of version ", map.version, " is of epoch ", map.epoch,
                        ", that before it of epoch ", std::prev(known)->second.epoch);
  }
  if (heard.to.empty()) return "";
  std::uint64_t& newest = newest_map_[heard.to];
  if (map.version < newest) {
    return absl::StrCat(heard.to, " is told the map of version ", map.version, " after version ",
                        newest);
  }
  newest = map.version;
  return "";
}

std::string SaidClocks::OnCut(const proto::CheckpointCut& cut) {
  const auto [known, first] = cuts_.try_emplace(cut.checkpoint, cut.clock);
  if (known->second == cut.clock) return "";
  return absl::StrCat("checkpoint ", cut.checkpoint, " is of clock ", cut.clock, ", and of clock ",
                      known->second);
}

std::string SaidClocks::OnWelcome(const proto::Welcome& welcome) {
  if (begins_at_.value_or(welcome.clock) == welcome.clock) {
    begins_at_ = welcome.clock;
    return "";
  }
  return absl::StrCat("the cluster begins at clock ", welcome.clock, ", and at clock ",
                      *begins_at_);
}

}  // namespace leeway::simulation
