#include "scheduler/maps/cluster_maps.h"

#include <algorithm>
#include <utility>

namespace leeway::scheduler {
namespace {

// The scheduler sends at most a thousand maps a second that can wait, however many nodes there are.
constexpr absl::Duration kMapRestPerNode = absl::Milliseconds(1);

}  // namespace

ClusterMaps::ClusterMaps(runtime::Loop* loop, const MembershipTable* members, Readers* readers,
                         Source* source, absl::Duration resend_interval, MapPublisher::Send send)
    : loop_(loop),
      members_(members),
      source_(source),
      publisher_(members, readers, resend_interval, std::move(send)),
      publish_timer_(loop,
                     [this] {
                       if (source_->running()) PublishNow();
                     }),
      urgent_timer_(loop, [this] { publisher_.Advance(Now()); }) {}

void ClusterMaps::Change() {
  builder_.Next(*members_, source_->Chains(), source_->Codecs(), source_->Settings());
  source_->OnNewVersion(newest()->version);
}

void ClusterMaps::PublishSoon() {
  if (!members_->complete()) return;
  const bool can_wait = newest()->epoch == published_epoch_;
  publish_timer_.SetBy(can_wait ? std::max(Now(), rest_until_) : Now());
}

void ClusterMaps::PublishNow() {
  published_epoch_ = newest()->epoch;
  rest_until_ = Now() + kMapRestPerNode * members_->Alive().size();
  publisher_.Publish(newest(), Now());
}

void ClusterMaps::Hurry() {
  publisher_.Hurry(builder_.concerned(), Now());
  urgent_timer_.Clear();
  urgent_timer_.SetBy(Now() + kUrgentPatience);
}

void ClusterMaps::Restore(std::uint64_t version, std::uint64_t epoch) {
  builder_.Restore(version, epoch, *members_, source_->Chains(), source_->Codecs(),
                   source_->Settings());
}

}  // namespace leeway::scheduler
