#include "worker/control/scheduler_requests.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_duration.h"
#include "runtime/loop/backoff.h"
#include "worker/control/argument_checks.h"
#include "worker/control/cluster_status.h"

namespace leeway::worker {

SchedulerRequests::SchedulerRequests(const Config& config, runtime::Loop* loop,
                                     node::Membership* membership)
    : resend_interval_(runtime::ResendInterval(config)),
      loop_(loop),
      membership_(membership),
      look_(loop, [this] { Look(); }) {}

SchedulerRequests::Common SchedulerRequests::Start(std::string what, absl::Duration timeout) {
  const absl::Time now = loop_->Now();
  look_.SetBy(now + timeout);
  return {.what = std::move(what),
          .started = now,
          .deadline = now + timeout,
          .due = now,
          .resend_delay = resend_interval_};
}

void SchedulerRequests::CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done) {
  const std::uint64_t request = next_request_++;
  TableRequest pending{.common = Start(absl::StrCat("creating table '", spec.name, "'"), timeout),
                       .message = proto::CreateTable{.request = request, .spec = spec},
                       .done = std::move(done)};
  Ask(request, tables_.emplace(request, std::move(pending)).first->second);
}

void SchedulerRequests::OpenTable(const std::string& name, absl::Duration timeout, TableDone done) {
  const std::uint64_t request = next_request_++;
  TableRequest pending{.common = Start(absl::StrCat("opening table '", name, "'"), timeout),
                       .message = proto::OpenTable{.request = request, .name = name},
                       .done = std::move(done)};
  Ask(request, tables_.emplace(request, std::move(pending)).first->second);
}

void SchedulerRequests::Barrier(Group group, const std::string& name, absl::Duration timeout,
                                BarrierDone done) {
  absl::Status status = CheckName("a barrier's name", name, 0);
  if (status.ok() && (group < Group::kWorkers || group > Group::kAll)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a barrier's group is ", static_cast<int>(group), ", may be 1 to 3"));
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  const std::uint64_t number = ++barrier_numbers_[{group, name}];
  const BarrierKey key{group, name, number};
  // The scheduler ends the barrier in time, and names who is missing; its answer may take a little.
  const absl::Duration grace = timeout / 10;
  BarrierRequest pending{.common = Start(absl::StrCat("barrier '", name, "'"), timeout + grace),
                         .ends = loop_->Now() + timeout,
                         .done = std::move(done)};
  Ask(key, barriers_.emplace(key, std::move(pending)).first->second);
}

void SchedulerRequests::Admin(std::string what, const std::string& command,
                              std::vector<std::string> arguments, absl::Duration timeout,
                              TextDone done) {
  const std::uint64_t request = next_request_++;
  TextRequest pending{
      .common = Start(std::move(what), timeout),
      .message =
          proto::Admin{.request = request, .command = command, .arguments = std::move(arguments)},
      .done = std::move(done)};
  Ask(request, texts_.emplace(request, std::move(pending)).first->second);
}

void SchedulerRequests::SetCodec(const std::string& table, const std::string& codec,
                                 absl::Duration timeout, TextDone done) {
  absl::Status status = CheckName("a table's name", table);
  if (status.ok()) status = CheckName("a codec", codec);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  Admin(absl::StrCat("giving table '", table, "' codec ", codec), "codec", {table, codec}, timeout,
        std::move(done));
}

void SchedulerRequests::ChangeTable(const std::string& table,
                                    const std::vector<std::string>& changes, absl::Duration timeout,
                                    TextDone done) {
  absl::Status status = CheckName("a table's name", table);
  for (const std::string& change : changes) {
    if (status.ok()) {
      status = proto::CheckText("a change of a table", change, 1, proto::kArgumentBytesMax);
    }
  }
  if (status.ok() && changes.size() >= proto::kArgumentsMax) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "a change of a table has ", changes.size(), " parts, may have ", proto::kArgumentsMax - 1));
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  std::vector<std::string> arguments = {table};
  arguments.insert(arguments.end(), changes.begin(), changes.end());
  Admin(absl::StrCat("changing table '", table, "'"), "table", std::move(arguments), timeout,
        std::move(done));
}

void SchedulerRequests::Checkpoint(const std::string& directory, std::uint64_t clock,
                                   absl::Duration timeout, TextDone done) {
  absl::Status status =
      proto::CheckText("a checkpoint's folder", directory, 0, proto::kArgumentBytesMax);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  Admin(absl::StrCat("saving a checkpoint in '", directory, "'"), "checkpoint-save",
        {directory, absl::StrCat("at:", clock)}, timeout,
        [done = std::move(done)](absl::StatusOr<std::string> json) mutable {
          done(json.ok() ? CheckpointPath(*json) : std::move(json));
        });
}

// The numbers of the tables go into as many arguments as they need.
void SchedulerRequests::Publish(const std::string& model, const std::vector<std::uint32_t>& tables,
                                std::uint64_t clock, absl::Duration timeout, TextDone done) {
  constexpr std::size_t kTablesPerArgument = 300;
  absl::Status status = CheckName("a model's name", model);
  if (status.ok() && tables.empty()) {
    status = absl::InvalidArgumentError(absl::StrCat("model '", model, "' has no tables"));
  }
  if (status.ok() && tables.size() > kTablesPerArgument * (proto::kArgumentsMax - 2)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("model '", model, "' has ", tables.size(), " tables, may have ",
                     kTablesPerArgument * (proto::kArgumentsMax - 2)));
  }
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  std::vector<std::string> arguments = {model, absl::StrCat("at:", clock)};
  for (std::size_t from = 0; from < tables.size(); from += kTablesPerArgument) {
    const std::size_t size = std::min(kTablesPerArgument, tables.size() - from);
    arguments.push_back(absl::StrJoin(std::span(tables).subspan(from, size), ","));
  }
  Admin(absl::StrCat("publishing model '", model, "'"), "publish", std::move(arguments), timeout,
        std::move(done));
}

void SchedulerRequests::DescribeModel(const std::string& model, absl::Duration timeout,
                                      TextDone done) {
  absl::Status status = CheckName("a model's name", model);
  if (status.ok()) status = CheckTimeout(timeout);
  if (!status.ok()) return done(status);
  Admin(absl::StrCat("subscribing to model '", model, "'"), "model", {model}, timeout,
        std::move(done));
}

void SchedulerRequests::Status(absl::Duration timeout, TextDone done) {
  const std::uint64_t request = next_request_++;
  TextRequest pending{.common = Start("asking for the cluster's status", timeout),
                      .message = proto::StatusRequest{request},
                      .done = std::move(done)};
  Ask(request, texts_.emplace(request, std::move(pending)).first->second);
}

// A message that cannot be sent is like a lost one.
template <class Key, class SchedulerRequest>
void SchedulerRequests::Ask(const Key& /*request*/, SchedulerRequest& pending) {
  membership_->Send(pending.message).IgnoreError();
  Resent(pending.common);
}

void SchedulerRequests::Ask(const BarrierKey& key, BarrierRequest& pending) {
  proto::BarrierEnter enter{
      .name = std::get<1>(key), .group = std::get<0>(key), .number = std::get<2>(key)};
  if (pending.ends != absl::InfiniteFuture()) {
    const std::int64_t left_ms = absl::ToInt64Milliseconds(pending.ends - loop_->Now());
    enter.timeout_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(1, left_ms));
  }
  membership_->Send(enter).IgnoreError();
  Resent(pending.common);
}

void SchedulerRequests::Resent(Common& common) {
  common.due = loop_->Now() + runtime::Jittered(common.resend_delay, loop_);
  common.resend_delay = runtime::NextResendDelay(common.resend_delay, resend_interval_);
  look_.SetBy(std::min(common.due, common.deadline));
}

void SchedulerRequests::OnTableReply(proto::TableReply reply) {
  const auto found = tables_.find(reply.request);
  if (found == tables_.end()) return;
  TableDone done = std::move(found->second.done);
  tables_.erase(found);
  if (!reply.result.ok()) return done(reply.result);
  done(std::move(reply));
}

void SchedulerRequests::OnBarrierRelease(const proto::BarrierRelease& release) {
  const auto found = barriers_.find({release.group, release.name, release.number});
  if (found == barriers_.end()) return;
  BarrierDone done = std::move(found->second.done);
  barriers_.erase(found);
  done(release.result);
}

void SchedulerRequests::OnText(const proto::AnyMessage& message, absl::string_view json) {
  std::uint64_t request = 0;
  absl::Status result;
  if (const auto* admin = std::get_if<proto::AdminReply>(&message)) {
    request = admin->request;
    result = admin->result;
  } else if (const auto* status = std::get_if<proto::StatusReply>(&message)) {
    request = status->request;
  }
  const auto found = texts_.find(request);
  if (found == texts_.end()) return;
  TextDone done = std::move(found->second.done);
  texts_.erase(found);
  if (!result.ok()) return done(result);
  done(std::string(json));
}

absl::Status SchedulerRequests::Late(const Common& common) const {
  return absl::DeadlineExceededError(
      absl::StrCat(common.what, ": ", membership_->DescribeScheduler(), "; waited ",
                   runtime::FormatDuration(loop_->Now() - common.started), " for its answer (",
                   "LEEWAY_REQUEST_TIMEOUT_MS)"));
}

// Ends requests that are past their deadlines, and sends again those that are due. Requests that
// end are taken out first, because `done` may make new ones.
template <class Key, class SchedulerRequest>
void SchedulerRequests::LookAt(std::map<Key, SchedulerRequest>& requests) {
  const absl::Time now = loop_->Now();
  std::vector<SchedulerRequest> late;
  for (auto it = requests.begin(); it != requests.end();) {
    SchedulerRequest& pending = it->second;
    if (pending.common.deadline <= now) {
      late.push_back(std::move(pending));
      it = requests.erase(it);
      continue;
    }
    if (pending.common.due <= now) Ask(it->first, pending);
    look_.SetBy(std::min(pending.common.due, pending.common.deadline));
    ++it;
  }
  for (SchedulerRequest& pending : late) pending.done(Late(pending.common));
}

void SchedulerRequests::Look() {
  LookAt(tables_);
  LookAt(barriers_);
  LookAt(texts_);
}

void SchedulerRequests::Fail(const absl::Status& why) {
  look_.Clear();
  std::map<std::uint64_t, TableRequest> tables = std::exchange(tables_, {});
  std::map<BarrierKey, BarrierRequest> barriers = std::exchange(barriers_, {});
  std::map<std::uint64_t, TextRequest> texts = std::exchange(texts_, {});
  for (auto& [request, pending] : tables) pending.done(why);
  for (auto& [key, pending] : barriers) pending.done(why);
  for (auto& [request, pending] : texts) pending.done(why);
}

}  // namespace leeway::worker
