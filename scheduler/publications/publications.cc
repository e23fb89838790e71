#include "scheduler/publications/publications.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

constexpr absl::Duration kPauseFirst = absl::Milliseconds(5);
constexpr absl::Duration kPauseMax = absl::Seconds(1);

nlohmann::json Summary(const proto::Published& model) {
  const proto::PublishedVersion& newest = model.versions.back();
  return {{"model", model.model},
          {"tables", model.tables.size()},
          {"version", newest.version},
          {"clock", newest.clock},
          {"versions_kept", model.versions.size()}};
}

}  // namespace

Publications::Publications(const Config* config, runtime::Loop* loop,
                           const MembershipTable* members, GetFacts facts, Tell tell,
                           TellAll tell_all)
    : config_(config),
      loop_(loop),
      members_(members),
      get_facts_(std::move(facts)),
      tell_(std::move(tell)),
      tell_all_(std::move(tell_all)) {}

void Publications::Stop() {
  stopped_ = true;
  while (!wishes_.empty()) Over(absl::UnavailableError("the cluster has ended"));
}

void Publications::Restore(const std::vector<proto::Published>& models, std::uint64_t generation) {
  publication_ = generation << 32;
  for (const proto::Published& model : models) models_[model.model] = model;
}

// ---- wishes ----

absl::StatusOr<Publications::Wish> Publications::Parse(
    const AdminService::Arguments& arguments) const {
  Wish wish;
  absl::string_view at;
  if (arguments.size() >= 3) at = arguments[1];
  if (!absl::ConsumePrefix(&at, "at:") || !absl::SimpleAtoi(at, &wish.clock) ||
      arguments[0].empty() || arguments[0].size() > proto::kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("publish takes a model's name of 1 to ", proto::kNameBytesMax,
                     " bytes, at:CLOCK, and the numbers of its tables"));
  }
  wish.model.model = arguments[0];
  const Facts facts = get_facts_();
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    for (const absl::string_view text : absl::StrSplit(arguments[i], ',')) {
      std::uint32_t table = 0;
      if (!absl::SimpleAtoi(text, &table) || !facts.tables.contains(table)) {
        return absl::NotFoundError(
            absl::StrCat("model '", wish.model.model, "': there is no table ", text));
      }
      wish.model.tables.push_back({table});
    }
  }
  std::ranges::sort(wish.model.tables);
  if (std::ranges::adjacent_find(wish.model.tables) != wish.model.tables.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", wish.model.model, "' has a table twice"));
  }
  if (!models_.contains(wish.model.model) && models_.size() >= kModelsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", kModelsMax, " models already, as many as there may be"));
  }
  return wish;
}

void Publications::Command(const AdminService::Arguments& arguments,
                           const AdminService::Answer& answer) {
  absl::StatusOr<Wish> wish = Parse(arguments);
  if (wish.ok() && stopped_) wish = absl::UnavailableError("the cluster has ended");
  if (wish.ok() && wishes_.size() >= kPublishesWaitingMax) {
    wish = absl::ResourceExhaustedError(
        absl::StrCat(kPublishesWaitingMax, " publications wait to be made already"));
  }
  if (!wish.ok()) return answer(wish.status());
  wish->answer = answer;
  wish->deadline = Now() + config_->request_timeout;
  wishes_.push_back(*std::move(wish));
  if (phase_ == Phase::kIdle) NextWish();
}

void Publications::NextWish() {
  clock_ = wishes_.front().clock;
  pause_ = kPauseFirst;
  trouble_ = absl::OkStatus();
  Begin();
}

void Publications::Describe(const AdminService::Arguments& arguments,
                            const AdminService::Answer& answer) const {
  if (arguments.empty()) {
    nlohmann::json models = nlohmann::json::array();
    for (const auto& [name, model] : models_) models.push_back(Summary(model));
    const nlohmann::json json = {{"models", std::move(models)}};
    return answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  const auto found = arguments.size() == 1 ? models_.find(arguments[0]) : models_.end();
  if (found == models_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, model] : models_) names.push_back(name);
    return answer(absl::NotFoundError(absl::StrCat(
        "no model '", absl::StrJoin(arguments, " "), "' has been published; ",
        names.empty() ? "none has" : absl::StrCat("there are: ", absl::StrJoin(names, ", ")))));
  }
  const Facts facts = get_facts_();
  nlohmann::json tables = nlohmann::json::array(), versions = nlohmann::json::array();
  for (const auto& [id] : found->second.tables) {
    const auto table = facts.tables.find(id);
    tables.push_back(table == facts.tables.end() ? "" : table->second);
  }
  for (const proto::PublishedVersion& one : found->second.versions) {
    versions.push_back({{"version", one.version}, {"clock", one.clock}});
  }
  const nlohmann::json json = {
      {"model", found->first}, {"tables", std::move(tables)}, {"versions", std::move(versions)}};
  answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// ---- one attempt ----

void Publications::Begin() {
  facts_ = get_facts_();
  if (!facts_.ready.ok()) return Over(facts_.ready);
  phase_ = Phase::kFreezing;
  ++publication_;
  frozen_ = 0;
  awaited_ = {facts_.servers.begin(), facts_.servers.end()};
  SayAgain();
}

void Publications::SayAgain() {
  resend_at_ = Now() + std::max(config_->resend_interval, absl::Milliseconds(1));
  for (const std::uint32_t node : awaited_) {
    tell_(node, proto::Publish{.publication = publication_,
                               .clock = clock_,
                               .tables = wishes_.front().model.tables});
  }
}

void Publications::OnReply(std::uint32_t node, const proto::PublishReply& reply) {
  if (reply.publication != publication_ || phase_ != Phase::kFreezing) return;
  if (absl::IsOutOfRange(reply.result)) clock_ = std::max(clock_ + 1, reply.closed);
  if (absl::IsOutOfRange(reply.result) || absl::IsAborted(reply.result) ||
      absl::IsUnavailable(reply.result)) {
    return TryAgain(reply.result);
  }
  if (!reply.result.ok()) {
    return Over(absl::Status(reply.result.code(), absl::StrCat(members_->DescribeServer(node), ": ",
                                                               reply.result.message())));
  }
  if (awaited_.erase(node) == 0) return;
  frozen_ += reply.shards;
  if (awaited_.empty()) OnAllFrozen();
}

void Publications::OnAllFrozen() {
  const Facts now = get_facts_();
  // Shards may have moved while they were frozen.
  if (frozen_ != facts_.num_shards || now.epoch != facts_.epoch) {
    return TryAgain(absl::AbortedError(
        absl::StrCat("the servers have frozen ", frozen_, " of ", facts_.num_shards, " shards")));
  }
  const proto::Published& wanted = wishes_.front().model;
  proto::Published& model = models_[wanted.model];
  const std::uint64_t before = model.versions.empty() ? 0 : model.versions.back().version;
  if (model.tables != wanted.tables) model.versions.clear();
  model.model = wanted.model;
  model.tables = wanted.tables;
  model.versions.push_back({.version = before + 1, .publication = publication_, .clock = clock_});
  const std::size_t kept = std::max<std::uint64_t>(1, config_->versions_kept);
  if (model.versions.size() > kept) {
    model.versions.erase(model.versions.begin(),
                         model.versions.end() - static_cast<std::ptrdiff_t>(kept));
  }
  ++changes_;
  tell_all_(model);
  const nlohmann::json json = {{"version", before + 1}, {"clock", clock_}};
  Over(json.dump());
}

// ---- how it ends ----

void Publications::TryAgain(const absl::Status& why) {
  trouble_ = why;
  phase_ = Phase::kPausing;
  awaited_.clear();
  resend_at_ = Now() + pause_;
  loop_->After(pause_, [self = self_] {
    if (*self != nullptr) (*self)->Tick();
  });
  pause_ = std::min(pause_ * 2, kPauseMax);
}

void Publications::Over(const absl::StatusOr<std::string>& result) {
  phase_ = Phase::kIdle;
  awaited_.clear();
  ++publication_;  // answers still on their way do not count
  const Wish wish = std::move(wishes_.front());
  wishes_.pop_front();
  if (!result.ok()) {
    runtime::LogWarning("model ", wish.model.model,
                        " is not published: ", result.status().message());
  }
  if (!wishes_.empty() && !stopped_) NextWish();
  wish.answer(result);
}

absl::Status Publications::TimedOut() const {
  const auto name = [this](std::string* text, std::uint32_t node) {
    absl::StrAppend(text, members_->DescribeServer(node), " (", members_->LastHeard(node, Now()),
                    ")");
  };
  const std::string what =
      phase_ == Phase::kFreezing
          ? absl::StrCat("not frozen by ", absl::StrJoin(awaited_, ", ", name),
                         ", which wait until all workers have reached clock ", clock_,
                         " where a table is of BSP (`leeway status` shows where each is)")
          : "no attempt succeeded";
  return absl::DeadlineExceededError(
      absl::StrCat(what, "; LEEWAY_REQUEST_TIMEOUT_MS of the scheduler says how long it may take",
                   trouble_.ok() ? "" : absl::StrCat(" (before that: ", trouble_.message(), ")")));
}

void Publications::Tick() {
  if (stopped_ || phase_ == Phase::kIdle) return;
  const absl::Time now = Now();
  if (now >= wishes_.front().deadline) return Over(TimedOut());
  if (phase_ == Phase::kPausing) {
    if (now >= resend_at_) Begin();
    return;
  }
  const Facts facts = get_facts_();
  if (!facts.ready.ok() || facts.epoch != facts_.epoch || facts.servers != facts_.servers) {
    TryAgain(absl::AbortedError("servers have come or gone, or shards have moved"));
  } else if (now >= resend_at_) {
    SayAgain();
  }
}

}  // namespace leeway::scheduler
