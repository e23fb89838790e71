#include "worker/core/operations.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "runtime/base/format_duration.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "worker/control/argument_checks.h"
#include "worker/control/cluster_status.h"
#include "worker/operations/answers.h"
#include "worker/slicing/live_table_settings.h"
#include "worker/slicing/updates_read.h"

namespace leeway::worker {
namespace {

// How long a transport may read the user's memory after an operation's result is known, before the
// connections are dropped; and how often this is logged and done again if it still reads it.
constexpr absl::Duration kReleaseGrace = absl::Seconds(1);
constexpr absl::Duration kLingerGrace = absl::Seconds(4);
constexpr absl::Duration kStatusTimeout = absl::Seconds(1);

// The consistency of the table in the request's clock.
Consistency ConsistencyOf(const Request& request) {
  const TableInfo& table = *request.table;
  return table.settings == nullptr ? table.spec.consistency
                                   : table.settings->ConsistencyAt(request.clock);
}

// How much of a push is in the table: ": of its 40 parts 37 are, 2 were refused, and of 1 …".
std::string HowMuchIsIn(const Operation& operation) {
  if (operation.requests <= 1) return "";
  const std::size_t open = operation.requests - operation.pushes_taken - operation.pushes_refused;
  return absl::StrCat(": of its ", operation.requests, " parts ", operation.pushes_taken, " are, ",
                      operation.pushes_refused,
                      operation.pushes_refused == 1 ? " was refused" : " were refused",
                      open == 0 ? "" : absl::StrCat(", and of ", open, " it is not known"));
}

// The result of a push of which a part may be in the table. Other errors say that nothing is.
absl::Status MayBeApplied(const Operation& operation) {
  const absl::Status& result = operation.result;
  if (result.ok()) return result;
  return absl::UnknownError(absl::StrCat(
      result.message(), "; all or a part of the push may have been applied, or may be yet",
      HowMuchIsIn(operation),
      absl::IsUnknown(result) ? ""
                              : absl::StrCat(" (", absl::StatusCodeToString(result.code()), ")")));
}

// Of a pull's answers the oldest counts.
void NoteInfo(const proto::Reply& reply, Operation* operation) {
  PullInfo& info = operation->info;
  const bool first = !std::exchange(operation->has_info, true);
  info.clock = first ? reply.slowest_clock : std::min(info.clock, reply.slowest_clock);
  info.version += reply.version;
}

}  // namespace

Operations::Operations(const Config& config, runtime::Loop* loop)
    : config_(config), loop_(loop), deadlines_(loop, [this] { OnDeadlines(); }) {}

void Operations::Connect(Servers* servers, Requests* requests,
                         SchedulerRequests* scheduler_requests) {
  servers_ = servers;
  requests_ = requests;
  scheduler_requests_ = scheduler_requests;
}

std::shared_ptr<Operation> Operations::New(Operation::Completion completion) {
  auto operation = Operation::New();
  operation->completion = std::move(completion);
  operation->number = next_number_++;
  return operation;
}

std::shared_ptr<Operation> Operations::Refuse(absl::Status why, Operation::Completion completion) {
  std::shared_ptr<Operation> operation = New(std::move(completion));
  operation->result = std::move(why);
  Complete(operation);
  return operation;
}

absl::Status Operations::Check(const Sliced& sliced, const Terms& terms,
                               absl::Duration timeout) const {
  LEEWAY_RETURN_IF_ERROR(CheckLearningRate(terms.learning_rate));
  LEEWAY_RETURN_IF_ERROR(CheckTimeout(timeout));
  return requests_->Admit(sliced);
}

std::shared_ptr<Operation> Operations::Submit(Sliced&& sliced, std::uint64_t clock,
                                              const Terms& terms,
                                              Operation::Completion completion) {
  const absl::Duration timeout = terms.timeout.value_or(config_.request_timeout);
  if (absl::Status may = Check(sliced, terms, timeout); !may.ok()) {
    return Refuse(std::move(may), std::move(completion));
  }
  std::shared_ptr<Operation> operation = New(std::move(completion));
  operation->table = std::move(sliced.table);
  operation->op = sliced.op;
  operation->clock = clock;
  operation->submitted = loop_->Now();
  operation->deadline = operation->submitted + timeout;
  operation->requests = operation->unanswered = sliced.pieces.size();
  operation->source = std::move(sliced.source);
  operation->sink = std::move(sliced.sink);
  operation->memory = std::move(sliced.memory);
  if (operation->op == proto::Op::kPushPull && operation->table->spec.consistency.closes_clocks()) {
    operation->clock_needed = operation->clock + 1;
  }
  SetDue(operation, operation->submitted, timeout);
  if (sliced.pieces.empty()) {
    if (operation->sink != nullptr) operation->sink->Finish();
    Finish(operation);
    return operation;
  }
  requests_->Submit(operation, std::move(sliced.pieces), terms.learning_rate, terms.priority);
  return operation;
}

void Operations::OnAnswer(Request& request, const Link& link, const proto::Reply& reply,
                          std::span<runtime::Buffer> payload) {
  const std::shared_ptr<Operation> operation = std::move(request.operation);
  const absl::Status answer = TakeAnswer(request, operation.get(), reply, payload);
  if (proto::HasPush(operation->op) && RefusesPush(reply.result)) {
    --operation->pushes_out;
    ++operation->pushes_refused;
  }
  if (reply.result.ok()) ++operation->pushes_taken;
  if (IsDropped(reply.result)) {
    ++operation->info.parts_dropped;
    ++parts_dropped_;
  }
  if (!answer.ok() && operation->result.ok()) {
    operation->result =
        runtime::Prefixed(absl::StrCat(operation->Describe(), " at ", link.Describe()), answer);
  }
  if (--operation->unanswered > 0) return;
  if (absl::IsDeadlineExceeded(operation->result)) return FinishNamingSilentWorkers(operation);
  if (operation->result.ok() && operation->sink != nullptr) operation->sink->Finish();
  Finish(operation);
}

// The server has named the workers that the pull waited for, within the last tenth of the
// operation's time; the scheduler knows when it last heard of each.
void Operations::FinishNamingSilentWorkers(const std::shared_ptr<Operation>& operation) {
  scheduler_requests_->Status(std::min(kStatusTimeout, operation->deadline - loop_->Now()),
                              [this, operation](const absl::StatusOr<std::string>& status) {
                                if (operation->stage != Operation::Stage::kAsking) return;
                                if (status.ok()) {
                                  operation->result = absl::DeadlineExceededError(
                                      WithLastHeard(operation->result.message(), *status));
                                }
                                Finish(operation);
                              });
}

absl::Status Operations::TakeAnswer(const Request& request, Operation* operation,
                                    const proto::Reply& reply, std::span<runtime::Buffer> payload) {
  // As the table's policy says; not an error of a push.
  if (IsDropped(reply.result) && request.op == proto::Op::kPush) return absl::OkStatus();
  LEEWAY_RETURN_IF_ERROR(reply.result);
  LEEWAY_RETURN_IF_ERROR(CheckAnswer(request, reply, payload));
  if (request.op == proto::Op::kCall) return operation->sink->Take(request.index, reply, payload);
  if (!proto::HasPull(request.op)) return absl::OkStatus();
  if (request.piece.publication != 0) {
    for (const runtime::Buffer& frame : payload) bytes_pulled_ += frame.size();
    return operation->sink->Take(request.index, reply, payload);
  }
  const absl::Status fresh = staleness_.Check(ConsistencyOf(request), request.clock, reply);
  if (!fresh.ok()) {
    runtime::LogError("table '", request.table->spec.name, "': ", fresh.message());
    return fresh;
  }
  for (const runtime::Buffer& frame : payload) bytes_pulled_ += frame.size();
  NoteInfo(reply, operation);
  if (request.table->updates_read != nullptr) {
    request.table->updates_read->Note(request.piece, reply.updates);
  }
  return operation->sink->Take(request.index, reply, payload);
}

// Ends the operation now, though requests are unanswered.
void Operations::Fail(const std::shared_ptr<Operation>& operation, absl::Status why) {
  if (operation->result.ok()) operation->result = std::move(why);
  requests_->Abandon(*operation);
  Finish(operation);
}

void Operations::GiveUp(const std::shared_ptr<Operation>& operation, absl::Status why) {
  if (operation->stage == Operation::Stage::kAsking) Fail(operation, std::move(why));
}

void Operations::FailLost(const std::vector<Failover::Lost>& lost) {
  for (const auto& [operation, shard] : lost) {
    if (operation->stage != Operation::Stage::kAsking) continue;
    Fail(operation, runtime::Prefixed(operation->Describe(), requests_->LossOf(shard)));
  }
}

// The operation has its result: it completes as soon as nothing reads the user's memory any more.
void Operations::Finish(const std::shared_ptr<Operation>& operation) {
  if (operation->pushes_out > 0) operation->result = MayBeApplied(*operation);
  operation->source.reset();
  operation->sink.reset();
  if (!operation->memory) return Complete(operation);
  const bool unused = operation->memory.Release([this, weak = std::weak_ptr(operation)] {
    const std::shared_ptr<Operation> released = weak.lock();
    if (released != nullptr && released->stage != Operation::Stage::kOver) Complete(released);
  });
  if (unused) return Complete(operation);
  operation->stage = Operation::Stage::kReleasing;
  SetDue(operation, loop_->Now(), kReleaseGrace);
}

void Operations::Complete(const std::shared_ptr<Operation>& operation) {
  due_.Remove(*operation);
  operation->stage = Operation::Stage::kOver;
  Operation::Completion completion = std::move(operation->completion);
  if (completion) {
    completion(operation);
  } else {
    operation->MarkDone(operation->result);
  }
}

void Operations::SetDue(const std::shared_ptr<Operation>& operation, absl::Time now,
                        absl::Duration after) {
  due_.Set(operation, now, after);
  deadlines_.SetBy(operation->due);
}

void Operations::OnDeadlines() {
  const absl::Time now = loop_->Now();
  for (const std::shared_ptr<Operation>& operation : due_.By(now)) OnOverdue(operation);
  if (!due_.empty()) {
    deadlines_.SetBy(due_.First());
  }
}

// Each stage gets a later deadline or ends.
void Operations::OnOverdue(const std::shared_ptr<Operation>& operation) {
  switch (operation->stage) {
    case Operation::Stage::kAsking:
      return Fail(operation,
                  absl::DeadlineExceededError(absl::StrCat(
                      operation->Describe(), " took longer than ",
                      runtime::FormatDuration(operation->deadline - operation->submitted), ": ",
                      requests_->DescribeWait(*operation),
                      " (Options::timeout, LEEWAY_REQUEST_TIMEOUT_MS)")));
    case Operation::Stage::kReleasing:
      operation->stage = Operation::Stage::kBreakingOff;
      SetDue(operation, loop_->Now(), kLingerGrace);
      return BreakOff(*operation);
    case Operation::Stage::kBreakingOff:
      // If the ticket completed now, the user might free memory that is still being read.
      runtime::LogError(operation->Describe(),
                        " has ended, but its connections, which were dropped, still read the data "
                        "given to it; waiting for them");
      SetDue(operation, loop_->Now(), kLingerGrace);
      // Its shards may have moved since it was sent.
      for (const auto& [place, link] : servers_->links()) servers_->Reconnect(link.get());
      return;
    case Operation::Stage::kOver:
      return;  // it ended with another operation that was due as well
  }
}

// A peer takes nothing in, so the transport holds the user's memory: drops the connections to all
// servers that have a part of the table. Unanswered requests are sent again.
void Operations::BreakOff(const Operation& operation) {
  if (over_) return servers_->Close();
  const TableInfo& table = *operation.table;
  const std::uint64_t blocks =
      std::min<std::uint64_t>(proto::NumBlocks(table.spec, table.block_bytes), table.num_shards);
  std::set<std::pair<std::uint32_t, std::uint32_t>> links;  // by rank and thread
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

void Operations::End(const absl::Status& why) {
  over_ = true;
  std::vector<std::shared_ptr<Operation>> asking;  // oldest deadline first
  for (std::shared_ptr<Operation>& operation : due_.All()) {
    if (operation->stage == Operation::Stage::kAsking) asking.push_back(std::move(operation));
  }
  if (requests_ != nullptr) requests_->Clear();
  for (const std::shared_ptr<Operation>& operation : asking) {
    operation->result = runtime::Prefixed(operation->Describe(), why);
    Finish(operation);
  }
}

void Operations::Stop() {
  for (const std::shared_ptr<Operation>& operation : due_.All()) {
    if (operation->stage != Operation::Stage::kOver) Complete(operation);
  }
}

}  // namespace leeway::worker
