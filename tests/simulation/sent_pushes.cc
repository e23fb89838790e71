#include "tests/simulation/sent_pushes.h"

#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "leeway/config.h"

namespace leeway::simulation {

void SentPushes::Hear(const van::Overheard& heard) {
  if (!absl::StartsWith(heard.from, Name(Role::kWorker))) return;
  if (const auto* const request = std::get_if<proto::Request>(&heard.message)) {
    if (proto::HasPush(request->op)) Note({.request = *request, .payload = heard.raw.payload});
  } else if (const auto* const batch = std::get_if<proto::PushBatch>(&heard.message)) {
    ps::ForEachPush(0, *batch, heard.raw.payload[0],
                    [this](ps::Inbound push) { Note(std::move(push)); });
  }
}

void SentPushes::Note(ps::Inbound push) {
  const proto::RequestId& id = push.request.id;
  Shard& shard = shards_[id.shard];
  if (!shard.known.insert({id.worker, id.incarnation, id.sequence}).second) return;
  // A push that was delayed while settings were being decided leaves after later ones, but comes
  // before them when all are sent again.
  auto place = shard.pushes.end();
  for (auto it = place; it != shard.pushes.begin();) {
    const proto::RequestId& before = (--it)->request.id;
    if (before.worker != id.worker || before.incarnation != id.incarnation) continue;
    if (before.sequence < id.sequence) break;
    place = it;
  }
  shard.pushes.insert(place, std::move(push));
}

const std::vector<ps::Inbound>& SentPushes::To(std::uint32_t shard) const {
  static const std::vector<ps::Inbound> kNone;
  const auto found = shards_.find(shard);
  return found == shards_.end() ? kNone : found->second.pushes;
}

}  // namespace leeway::simulation
