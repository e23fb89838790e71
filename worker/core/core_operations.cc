// The part of the core that sees an operation from its submission to its end.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/mutants.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "worker/core/cluster_status.h"
#include "worker/core/core.h"
#include "worker/operations/answers.h"
#include "worker/slicing/live_settings.h"

namespace leeway::worker {
namespace {

// How long a transport may read the user's memory after an operation's result is known, before
// its connections are dropped; and how long these may linger before somebody is told.
constexpr absl::Duration kReleaseGrace = absl::Seconds(1);
constexpr absl::Duration kLingerGrace = absl::Seconds(4);
constexpr absl::Duration kStatusTimeout = absl::Seconds(1);
// How often a worker that leaves looks whether its pushes have been answered.
constexpr absl::Duration kLeaveLook = absl::Milliseconds(5);

// The bound that holds in the request's clock.
Consistency ConsistencyOf(const Request& request) {
  const TableInfo& table = *request.table;
  return table.settings == nullptr || runtime::Planted<"bound-of-the-created-table">()
             ? table.spec.consistency
             : table.settings->ConsistencyAt(request.clock);
}

// A server does not read a request with another.
absl::Status CheckLearningRate(const std::optional<double>& rate) {
  if (!rate.has_value() || (std::isfinite(*rate) && *rate >= 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Options::learning_rate is ", *rate, ", but must be finite and not negative"));
}

// How a push ends of which something may be in the table. Other errors say that nothing is.
absl::Status MayBeApplied(const absl::Status& result) {
  if (result.ok() || absl::IsUnknown(result)) return result;
  return absl::UnknownError(absl::StrCat(
      result.message(), "; all or a part of the push may have been applied, or may be yet (",
      absl::StatusCodeToString(result.code()), ")"));
}

absl::Status LeftOpen() {
  return absl::DeadlineExceededError(
      "this worker has left its cluster before the others ended the iterations that it had pushed "
      "in: what it pushed to tables in BSP counts, but is lost if a server dies before they have");
}

}  // namespace

absl::Status Core::CheckTimeout(absl::Duration timeout) {
  if (timeout > absl::ZeroDuration()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("nothing was sent: the timeout is ", absl::FormatDuration(timeout),
                   ", but has to be above 0 (Options::timeout, LEEWAY_REQUEST_TIMEOUT_MS)"));
}

std::shared_ptr<Operation> Core::Submit(absl::StatusOr<Sliced> sliced, const Terms& terms,
                                        Operation::Completion completion) {
  auto operation = Operation::New();
  operation->completion = std::move(completion);
  operation->number = next_operation_++;
  absl::Status status = Usable();
  if (status.ok()) status = sliced.status();
  if (status.ok() && proto::HasPush(sliced->op)) {
    status = MayDo(absl::StrCat("push to table '", sliced->table->spec.name, "'"));
  }
  if (status.ok()) status = CheckLearningRate(terms.learning_rate);
  const absl::Duration timeout = terms.timeout.value_or(config_.request_timeout);
  if (status.ok()) status = CheckTimeout(timeout);
  if (status.ok()) status = requests_->Admit(*sliced);
  if (!status.ok()) {
    operation->result = std::move(status);
    Complete(operation);
    return operation;
  }

  operation->table = std::move(sliced->table);
  operation->op = sliced->op;
  operation->clock = clock();
  operation->submitted = loop_->Now();
  operation->deadline = operation->submitted + timeout;
  operation->requests = operation->unanswered = sliced->pieces.size();
  operation->source = std::move(sliced->source);
  operation->sink = std::move(sliced->sink);
  operation->memory = std::move(sliced->memory);
  if (operation->op == proto::Op::kPushPull && operation->table->spec.consistency.is_bsp()) {
    operation->clock_needed = operation->clock + 1;
  }
  SetDue(operation, operation->submitted, timeout);
  if (sliced->pieces.empty()) {
    if (operation->sink != nullptr) operation->sink->Finish();
    Settle(operation);
    return operation;
  }
  requests_->Submit(operation, std::move(sliced->pieces), terms.learning_rate, terms.priority);
  return operation;
}

void Core::OnAnswer(Request& request, const Link& link, const proto::Reply& reply,
                    std::span<runtime::Buffer> payload) {
  const std::shared_ptr<Operation> operation = std::move(request.operation);
  const absl::Status answer = TakeAnswer(request, *operation, reply, payload);
  if (proto::HasPush(operation->op) && RefusesPush(reply.result) &&
      !runtime::Planted<"refused-push-may-be-applied">())
    --operation->pushes_out;
  if (!answer.ok() && operation->result.ok()) {
    operation->result =
        runtime::Prefixed(absl::StrCat(operation->Describe(), " at ", link.Describe()), answer);
  }
  if (--operation->unanswered > 0) return;
  if (absl::IsDeadlineExceeded(operation->result)) return SettleSayingWhoIsSilent(operation);
  if (operation->result.ok() && operation->sink != nullptr) operation->sink->Finish();
  Settle(operation);
}

// The server has said whom the pull waited for, and in the last tenth of the operation's time; when
// these were last heard the scheduler knows.
void Core::SettleSayingWhoIsSilent(const std::shared_ptr<Operation>& operation) {
  scheduler_requests_->Status(std::min(kStatusTimeout, operation->deadline - loop_->Now()),
                              [this, operation](const absl::StatusOr<std::string>& status) {
                                if (operation->stage != Operation::Stage::kAsking) return;
                                if (status.ok()) {
                                  operation->result = absl::DeadlineExceededError(
                                      WithLastHeard(operation->result.message(), *status));
                                }
                                Settle(operation);
                              });
}

// The oldest of what its requests were answered with.
void Core::NoteInfo(const proto::Reply& reply, Operation* operation) {
  PullInfo& info = operation->info;
  const bool first = !std::exchange(operation->has_info, true);
  info.clock = first || runtime::Planted<"oldest-answer-not-told">()
                   ? reply.slowest_clock
                   : std::min(info.clock, reply.slowest_clock);
  info.version += reply.version;
}

absl::Status Core::TakeAnswer(const Request& request, Operation& operation,
                              const proto::Reply& reply, std::span<runtime::Buffer> payload) {
  LEEWAY_RETURN_IF_ERROR(reply.result);
  LEEWAY_RETURN_IF_ERROR(CheckAnswer(request, reply, payload));
  if (!proto::HasPull(request.op)) return absl::OkStatus();
  const absl::Status fresh = staleness_.Check(ConsistencyOf(request), request.clock, reply);
  if (!fresh.ok()) {
    runtime::LogError("table '", request.table->spec.name, "': ", fresh.message());
    return fresh;
  }
  for (const runtime::Buffer& frame : payload) bytes_pulled_ += frame.size();
  NoteInfo(reply, &operation);
  return operation.sink->Take(request.index, reply, payload);
}

// Ends it now, though requests are unanswered.
void Core::FailOperation(const std::shared_ptr<Operation>& operation, absl::Status why) {
  if (operation->result.ok()) operation->result = std::move(why);
  requests_->Abandon(*operation);
  Settle(operation);
}

void Core::Settle(const std::shared_ptr<Operation>& operation) {
  if (operation->pushes_out > 0 && !runtime::Planted<"partial-push-is-nowhere">())
    operation->result = MayBeApplied(operation->result);
  operation->source.reset();
  operation->sink.reset();
  if (!operation->memory) return Complete(operation);
  const bool unused = operation->memory.Release([this, weak = std::weak_ptr(operation)] {
    const std::shared_ptr<Operation> released = weak.lock();
    if (released != nullptr && released->stage != Operation::Stage::kOver) Complete(released);
  });
  if (unused || runtime::Planted<"memory-back-before-it-is-unused">()) return Complete(operation);
  operation->stage = Operation::Stage::kReleasing;
  SetDue(operation, loop_->Now(), kReleaseGrace);
}

void Core::Complete(const std::shared_ptr<Operation>& operation) {
  due_.Remove(*operation);
  operation->stage = Operation::Stage::kOver;
  Operation::Completion completion = std::move(operation->completion);
  if (completion) {
    completion(operation);
  } else {
    operation->MarkDone(operation->result);
  }
}

void Core::SetDue(const std::shared_ptr<Operation>& operation, absl::Time now,
                  absl::Duration after) {
  due_.Set(operation, now, after);
  deadlines_.SetBy(operation->due);
}

void Core::LookAtDeadlines() {
  const absl::Time now = loop_->Now();
  for (const std::shared_ptr<Operation>& operation : due_.By(now)) Overdue(operation);
  if (!due_.empty()) deadlines_.SetBy(due_.First());
}

// Every step moves the operation on to a later time or to its end.
void Core::Overdue(const std::shared_ptr<Operation>& operation) {
  switch (operation->stage) {
    case Operation::Stage::kAsking:
      return FailOperation(
          operation, absl::DeadlineExceededError(absl::StrCat(
                         operation->Describe(), " took longer than ",
                         runtime::FormatDuration(operation->deadline - operation->submitted), ": ",
                         requests_->DescribeWait(*operation),
                         " (Options::timeout, LEEWAY_REQUEST_TIMEOUT_MS)")));
    case Operation::Stage::kReleasing:
      operation->stage = Operation::Stage::kBreakingOff;
      SetDue(operation, loop_->Now(), kLingerGrace);
      return BreakOff(*operation);
    case Operation::Stage::kBreakingOff:
      // A ticket that completed now would have the user free what is still being read.
      runtime::LogError(operation->Describe(),
                        " has ended, but its connections, which were dropped, still read the data "
                        "given to it; waiting for them");
      SetDue(operation, loop_->Now(), kLingerGrace);
      // Its shards may have moved since it was sent.
      for (const auto& [place, link] : servers_->links()) servers_->Reconnect(link.get());
      return;
    case Operation::Stage::kOver:
      return;  // it has ended with another one that was due as well
  }
}

// The transport sits on the user's memory, because a peer takes nothing in: drops the
// connections to all servers that hold a part of the table. What is unanswered is asked again.
void Core::BreakOff(const Operation& operation) {
  if (phase_ == Phase::kOver) return servers_->Close();
  const TableInfo& table = *operation.table;
  const std::uint64_t blocks =
      std::min<std::uint64_t>(proto::NumBlocks(table.spec, table.block_bytes), table.num_shards);
  std::set<std::pair<std::uint32_t, std::uint32_t>> links;  // in the order of their names
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const proto::ShardOwner owner =
        map_->owners[proto::ShardOfBlock(table.id, block, table.num_shards)];
    links.emplace(owner.server_rank, owner.thread);
  }
  for (const auto& [rank, thread] : links) {
    Link* link = servers_->Find(rank, thread);
    if (link == nullptr) continue;
    runtime::LogWarning("dropping the connection to ", link->Describe(),
                        ", which takes nothing in, to give the user's data back");
    servers_->Reconnect(link);
  }
}

// ---- the end ----

void Core::Leave(absl::Duration timeout, Done done) {
  if (phase_ == Phase::kLeaving) return done(Usable());
  if (phase_ != Phase::kReady) {
    End(absl::FailedPreconditionError("this worker has left its cluster"));
    return done(absl::OkStatus());
  }
  phase_ = Phase::kLeaving;
  left_ = std::move(done);
  leave_by_ = loop_->Now() + timeout;
  const absl::Status left = absl::FailedPreconditionError("this worker has left its cluster");
  scheduler_requests_->Fail(left);
  calls_->Fail(left);
  LeaveWhenQuiet();
}

void Core::LeaveWhenQuiet() {
  if (phase_ != Phase::kLeaving) return;
  const absl::Time now = loop_->Now();
  // Of what was pushed in the open iteration to tables whose pushes are held, one server may have
  // the only copy but for this worker's. With the iteration ended it can close while this worker is
  // here to send it again.
  if (requests_->totals().unanswered_pushes() == 0 && !requests_->RetainsBefore(ticker_->clock()) &&
      requests_->RetainsBefore(ticker_->clock() + 1) &&
      !runtime::Planted<"leaves-without-a-tick">()) {
    ticker_->Tick();
  }
  // What is retained of iterations that have ended is safe only when they have closed.
  const bool quiet = (requests_->totals().unanswered_pushes() == 0 ||
                      runtime::Planted<"leaves-with-pushes-open">()) &&
                     (ticker_->acknowledged() || runtime::Planted<"leaves-with-tick-unheard">()) &&
                     (!requests_->RetainsBefore(ticker_->clock()) ||
                      runtime::Planted<"leaves-with-clocks-open">());
  ticker_->Look();
  if (!quiet && (now < leave_by_ || runtime::Planted<"leaves-past-its-time">())) {
    leave_.SetBy(std::min(now + kLeaveLook, leave_by_));
    return;
  }
  // The scheduler is to hear of it even if the servers took all the time there was.
  const absl::Duration left = std::max(leave_by_ - now, absl::Seconds(1));
  const bool open = requests_->RetainsBefore(ticker_->clock());
  membership_->Leave(left, [this, open, poster = poster_](const absl::Status& status) {
    if (poster->closed()) return;
    Done done = std::exchange(left_, nullptr);
    End(absl::FailedPreconditionError("this worker has left its cluster"));
    if (done)
      done(status.ok() && open && !runtime::Planted<"left-open-untold">() ? LeftOpen() : status);
  });
}

// Nothing more will be heard: ends whatever is under way.
void Core::End(const absl::Status& why) {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  over_ = why;
  connect_.Clear();
  leave_.Clear();
  if (scheduler_requests_ != nullptr) scheduler_requests_->Fail(why);
  if (calls_ != nullptr) calls_->Fail(why);
  if (ticker_ != nullptr) ticker_->Stop();
  if (meter_ != nullptr) meter_->Stop();
  std::vector<std::shared_ptr<Operation>> asking;  // oldest deadline first
  for (std::shared_ptr<Operation>& operation : due_.All()) {
    if (operation->stage == Operation::Stage::kAsking) asking.push_back(std::move(operation));
  }
  if (requests_ != nullptr) requests_->Clear();
  for (const std::shared_ptr<Operation>& operation : asking) {
    operation->result = runtime::Prefixed(operation->Describe(), why);
    Settle(operation);
  }
  // Not from within one of its own calls.
  poster_->Post([this] {
    if (servers_ != nullptr) servers_->Close();
  });
  if (left_) std::exchange(left_, nullptr)(why);
  if (ready_) std::exchange(ready_, nullptr)(why);
}

void Core::Stop() {
  End(absl::FailedPreconditionError("this worker has left its cluster"));
  if (servers_ != nullptr) servers_->Close();
  for (const std::shared_ptr<Operation>& operation : due_.All()) {
    if (operation->stage != Operation::Stage::kOver) Complete(operation);
  }
}

}  // namespace leeway::worker
