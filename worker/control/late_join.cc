#include "worker/control/late_join.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/loop/backoff.h"

namespace leeway::worker {
namespace {

// A server that does not know this worker yet does not answer. It soon will, so the first
// repetition comes early.
constexpr absl::Duration kFirstDelay = absl::Milliseconds(20);

}  // namespace

LateJoin::LateJoin(const Config& config, runtime::Loop* loop, Servers* servers, WorkerId self,
                   Done done)
    : resend_interval_(runtime::ResendInterval(config)),
      loop_(loop),
      servers_(servers),
      self_(self),
      done_(std::move(done)),
      resend_(loop, [this] { AskAll(); }) {}

void LateJoin::Follow(const proto::ClusterMap& map) {
  if (done_ == nullptr || map.epoch == epoch_) return;
  epoch_ = map.epoch;
  answered_.clear();
  delay_ = std::min(kFirstDelay, resend_interval_);
  AskAll();
  FinishIfAllAnswered();
}

bool LateJoin::Waits(const Link& link) const {
  return link.alive && !link.shards.empty() && !answered_.contains({link.server_rank, link.thread});
}

void LateJoin::Ask(Link* link) {
  if (done_ == nullptr || !link->up || !Waits(*link)) return;
  const proto::EnterClock enter{
      .worker = self_.rank, .incarnation = self_.incarnation, .epoch = epoch_};
  // A failed send is like a lost message.
  servers_->Send(link, enter, {}).IgnoreError();
}

void LateJoin::AskAll() {
  if (done_ == nullptr) return;
  for (const auto& [place, link] : servers_->links()) Ask(link.get());
  resend_.SetBy(loop_->Now() + runtime::Jittered(delay_, loop_));
  delay_ = std::min(2 * delay_, resend_interval_);
}

void LateJoin::OnLinkUp(Link* link) { Ask(link); }

void LateJoin::OnReply(Link* link, const proto::EnterClockReply& reply) {
  if (done_ == nullptr || reply.epoch != epoch_) return;
  answered_.emplace(link->server_rank, link->thread);
  clock_ = std::max(clock_, reply.clock);
  FinishIfAllAnswered();
}

void LateJoin::FinishIfAllAnswered() {
  const auto& links = servers_->links();
  if (std::any_of(links.begin(), links.end(),
                  [this](const auto& entry) { return Waits(*entry.second); })) {
    return;
  }
  resend_.Clear();
  std::exchange(done_, nullptr)(clock_);
}

std::string LateJoin::DescribeWait() const {
  std::string text;
  for (const auto& [place, link] : servers_->links()) {
    if (!Waits(*link)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", link->Describe(), link->Silence(loop_->Now()));
  }
  return absl::StrCat(text, " has not let this worker in");
}

}  // namespace leeway::worker
