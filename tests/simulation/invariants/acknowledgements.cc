#include "tests/simulation/invariants/acknowledgements.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {

std::string Acknowledgements::Hear(const van::Overheard& heard) {
  if (const auto* request = std::get_if<proto::Request>(&heard.message)) {
    if (proto::HasPush(request->op)) OnPush(request->id, request->table, request->clock);
  } else if (const auto* batch = std::get_if<proto::PushBatch>(&heard.message)) {
    for (const proto::BatchedPush& push : batch->pushes) {
      OnPush({.incarnation = batch->incarnation,
              .sequence = push.sequence,
              .worker = batch->worker,
              .shard = push.shard},
             push.table, batch->clock);
    }
  } else if (const auto* tick = std::get_if<proto::ClockTick>(&heard.message)) {
    std::uint64_t& clock = clocks_[{tick->worker, tick->incarnation}];
    clock = std::max(clock, tick->clock);
  } else if (const auto* reply = std::get_if<proto::Reply>(&heard.message)) {
    return OnAnswer(*reply);
  } else if (const auto* acks = std::get_if<proto::PushAcks>(&heard.message)) {
    for (const proto::PushAck& ack : acks->acks) {
      std::string wrong = OnAnswer(proto::ReplyOf(*acks, ack));
      if (!wrong.empty()) return wrong;
    }
  } else if (const auto* install = std::get_if<proto::InstallTable>(&heard.message)) {
    if (install->of == 0 && install->spec.consistency.is_bsp()) bsp_.insert(install->table);
  }
  return "";
}

void Acknowledgements::OnPush(const proto::RequestId& id, std::uint32_t table,
                              std::uint64_t clock) {
  pushes_.try_emplace({id.worker, id.incarnation, id.shard, id.sequence},
                      Sent{.held = bsp_.contains(table), .clock = clock});
}

std::string Acknowledgements::OnAnswer(const proto::Reply& reply) const {
  const proto::RequestId& id = reply.id;
  const auto push = pushes_.find({id.worker, id.incarnation, id.shard, id.sequence});
  if (push == pushes_.end() || !reply.result.ok()) return "";
  const std::string which = absl::StrCat("push ", id.sequence, " of worker ", id.worker,
                                         " to shard ", id.shard, ", of clock ", push->second.clock);
  if (reply.provisional) {
    return push->second.held ? "" : absl::StrCat(which, ", is provisional, and held nowhere");
  }
  if (!push->second.held || !replicated_) return "";
  const auto at = clocks_.find({id.worker, id.incarnation});
  const std::uint64_t clock = at == clocks_.end() ? 0 : at->second;
  if (clock > push->second.clock) return "";
  return absl::StrCat(which, ", is settled, and its worker has not ended that clock");
}

}  // namespace leeway::simulation
