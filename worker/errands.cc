#include "worker/errands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/resend_delay.h"
#include "worker/spoken_duration.h"

namespace leeway::worker {

Errands::Errands(const Config& config, runtime::Loop* loop, node::Membership* membership)
    : resend_interval_(ResendInterval(config)),
      loop_(loop),
      membership_(membership),
      look_(loop, [this] { Look(); }) {}

Errands::Common Errands::Start(std::string what, absl::Duration timeout) {
  const absl::Time now = loop_->Now();
  look_.SetBy(now + timeout);
  return {.what = std::move(what),
          .started = now,
          .deadline = now + timeout,
          .due = now,
          .resend_delay = resend_interval_};
}

void Errands::CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done) {
  const std::uint64_t request = next_request_++;
  TableErrand errand{.common = Start(absl::StrCat("creating table '", spec.name, "'"), timeout),
                     .message = proto::CreateTable{.request = request, .spec = spec},
                     .done = std::move(done)};
  Ask(tables_.emplace(request, std::move(errand)).first->second);
}

void Errands::OpenTable(const std::string& name, absl::Duration timeout, TableDone done) {
  const std::uint64_t request = next_request_++;
  TableErrand errand{.common = Start(absl::StrCat("opening table '", name, "'"), timeout),
                     .message = proto::OpenTable{.request = request, .name = name},
                     .done = std::move(done)};
  Ask(tables_.emplace(request, std::move(errand)).first->second);
}

void Errands::Barrier(Group group, const std::string& name, absl::Duration timeout,
                      BarrierDone done) {
  const std::uint64_t number = ++barrier_numbers_[{group, name}];
  const BarrierKey key{group, name, number};
  BarrierErrand errand{.common = Start(absl::StrCat("barrier '", name, "'"), timeout),
                       .done = std::move(done)};
  Ask(key, barriers_.emplace(key, std::move(errand)).first->second);
}

// A message that cannot be sent is one more lost message.
void Errands::Ask(TableErrand& errand) {
  membership_->Send(errand.message).IgnoreError();
  Resent(errand.common);
}

void Errands::Ask(const BarrierKey& key, BarrierErrand& errand) {
  proto::BarrierEnter enter{
      .name = std::get<1>(key), .group = std::get<0>(key), .number = std::get<2>(key)};
  // The scheduler knows who is missing, so it is given the time to say so before we give up.
  if (errand.common.deadline != absl::InfiniteFuture()) {
    const absl::Duration left = (errand.common.deadline - loop_->Now()) * 9 / 10;
    enter.timeout_ms =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, absl::ToInt64Milliseconds(left)));
  }
  membership_->Send(enter).IgnoreError();
  Resent(errand.common);
}

void Errands::Resent(Common& common) {
  common.due = loop_->Now() + Jittered(common.resend_delay, loop_);
  common.resend_delay = NextResendDelay(common.resend_delay, resend_interval_);
  look_.SetBy(std::min(common.due, common.deadline));
}

void Errands::OnTableReply(proto::TableReply reply) {
  const auto found = tables_.find(reply.request);
  if (found == tables_.end()) return;
  TableDone done = std::move(found->second.done);
  tables_.erase(found);
  if (!reply.result.ok()) return done(reply.result);
  done(std::move(reply));
}

void Errands::OnBarrierRelease(const proto::BarrierRelease& release) {
  const auto found = barriers_.find({release.group, release.name, release.number});
  if (found == barriers_.end()) return;
  BarrierDone done = std::move(found->second.done);
  barriers_.erase(found);
  done(release.result);
}

absl::Status Errands::Late(const Common& common) const {
  return absl::DeadlineExceededError(
      absl::StrCat(common.what, ": the scheduler at ", membership_->scheduler_address(),
                   " has not answered for ", Spoken(loop_->Now() - common.started),
                   " (LEEWAY_REQUEST_TIMEOUT_MS)"));
}

// Ends what is past its deadline, asks again what is due. What ends is taken out first: its
// `done` may ask for more.
void Errands::Look() {
  const absl::Time now = loop_->Now();
  std::vector<std::pair<absl::Status, TableDone>> late_tables;
  std::vector<std::pair<absl::Status, BarrierDone>> late_barriers;
  for (auto it = tables_.begin(); it != tables_.end();) {
    TableErrand& errand = it->second;
    if (errand.common.deadline <= now) {
      late_tables.emplace_back(Late(errand.common), std::move(errand.done));
      it = tables_.erase(it);
      continue;
    }
    if (errand.common.due <= now) Ask(errand);
    look_.SetBy(std::min(errand.common.due, errand.common.deadline));
    ++it;
  }
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    BarrierErrand& errand = it->second;
    if (errand.common.deadline <= now) {
      late_barriers.emplace_back(Late(errand.common), std::move(errand.done));
      it = barriers_.erase(it);
      continue;
    }
    if (errand.common.due <= now) Ask(it->first, errand);
    look_.SetBy(std::min(errand.common.due, errand.common.deadline));
    ++it;
  }
  for (auto& [status, done] : late_tables) done(status);
  for (auto& [status, done] : late_barriers) done(status);
}

void Errands::Fail(const absl::Status& why) {
  look_.Clear();
  std::map<std::uint64_t, TableErrand> tables = std::exchange(tables_, {});
  std::map<BarrierKey, BarrierErrand> barriers = std::exchange(barriers_, {});
  for (auto& [request, errand] : tables) errand.done(why);
  for (auto& [key, errand] : barriers) errand.done(why);
}

}  // namespace leeway::worker
