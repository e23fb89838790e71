#include "scheduler/control/cluster_end.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/log/log.h"
#include "scheduler/control/recovery.h"

namespace leeway::scheduler {

ClusterEnd::ClusterEnd(const Services* services)
    : s_(services),
      return_timer_(services->loop,
                    [this] {
                      if (running() && s_->members->Alive(Role::kWorker).empty()) SaveAndEnd();
                    }),
      resend_timer_(services->loop, [this] { SendShutdown(); }),
      grace_timer_(services->loop, [this] { Finish(); }) {}

void ClusterEnd::EndIfDone(bool died) {
  if (!running() || !s_->members->complete() || !s_->members->Alive(Role::kWorker).empty()) return;
  if (return_timer_.pending() || saves_at_end_) return;
  if (!died) return SaveAndEnd();
  return_timer_.SetBy(s_->Now() + s_->config->failure_timeout);
}

// A worker may join while the checkpoint is saved: then the cluster goes on.
void ClusterEnd::SaveAndEnd() {
  if (!s_->config->checkpoint_at_end) return EndInOrder(absl::OkStatus());
  saves_at_end_ = true;
  runtime::LogInfo("all workers have left: a checkpoint is saved (LEEWAY_CHECKPOINT_AT_END)");
  Checkpoints::Wish wish;
  wish.at_end = true;
  s_->checkpoints->Save(std::move(wish), [this](const absl::StatusOr<Checkpoints::Saved>& saved) {
    saves_at_end_ = false;
    if (!running() || !s_->members->Alive(Role::kWorker).empty()) return;
    EndInOrder(saved.ok() ? absl::OkStatus()
                          : absl::Status(saved.status().code(),
                                         absl::StrCat("the checkpoint at the end "
                                                      "(LEEWAY_CHECKPOINT_AT_END) was not saved: ",
                                                      saved.status().message())));
  });
}

void ClusterEnd::EndInOrder(const absl::Status& saved) {
  std::vector<std::string> died;
  for (const Node* node : s_->members->Dead()) {
    died.push_back(absl::StrCat(node->FullName(), ": ", node->gone_because));
  }
  const ChainPlanner& planner = s_->chains->planner();
  absl::Status result = saved;
  if (const std::size_t lost = planner.Lost(); lost > 0) {
    result = absl::DataLossError(absl::StrCat(
        "the cluster has ended, but ", lost, " of ", planner.chains().size(),
        " shards were lost with servers that went (LEEWAY_REPLICATION=", s_->config->replication,
        ")", died.empty() ? "" : "; dead: ", absl::StrJoin(died, "; ")));
  } else if (!died.empty() && saved.ok()) {
    result = absl::UnavailableError(
        absl::StrCat("the cluster has ended in order, but not everyone lived to see it; dead: ",
                     absl::StrJoin(died, "; ")));
  }
  End(absl::OkStatus(), result);
}

void ClusterEnd::End(const absl::Status& word, const absl::Status& result) {
  runtime::LogInfo("the cluster ends", word.ok() ? "" : ": ", word.message());
  ending_ = Ending{word, result, {}};
  s_->checkpoints->Stop();
  s_->publications->Stop();
  for (const Node* node : s_->members->Alive()) {
    // A node without a connection has given up on a cluster that never became complete, and does
    // not come back to be told.
    if (s_->members->complete() || node->peer != 0) ending_->awaited.insert(node->id);
  }
  // Workers that have left may still wait for the acknowledgement.
  for (const Node* worker : s_->members->workers()) {
    if (worker != nullptr && worker->state == Node::State::kLeft && worker->peer != 0) {
      ending_->awaited.insert(worker->id);
    }
  }
  SendShutdown();
  grace_timer_.SetBy(s_->Now() + kEndingGrace);
  FinishIfAllGone();
}

void ClusterEnd::EndSilently(const absl::Status& why) {
  ending_ = Ending{why, why, {}};
  s_->checkpoints->Stop();
  s_->publications->Stop();
  // Later, since the owner may destroy the scheduler in it.
  s_->loop->Post([done = std::exchange(done_, nullptr), why]() mutable { done(std::move(why)); });
}

void ClusterEnd::SendShutdown() {
  for (std::uint32_t id : ending_->awaited) {
    const Node* node = s_->members->Find(id);
    if (node != nullptr && node->alive()) s_->sender->SendTo(*node, proto::Shutdown{word()});
  }
  for (const Node* reader : s_->members->readers().All()) {
    s_->sender->SendTo(*reader, proto::Shutdown{word()});
  }
  resend_timer_.SetBy(s_->Now() + kEndingResendInterval);
}

void ClusterEnd::Gone(std::uint32_t node) {
  ending_->awaited.erase(node);
  FinishIfAllGone();
}

void ClusterEnd::FinishIfAllGone() {
  if (!running() && ending_->awaited.empty()) Finish();
}

void ClusterEnd::Finish() {
  resend_timer_.Clear();
  grace_timer_.Clear();
  if (done_ == nullptr) return;
  s_->recovery->ForgetState();
  // Later, since the owner may destroy the scheduler in it.
  s_->loop->Post([done = std::exchange(done_, nullptr), result = ending_->result]() mutable {
    done(std::move(result));
  });
}

}  // namespace leeway::scheduler
