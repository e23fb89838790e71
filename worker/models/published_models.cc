#include "worker/models/published_models.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"

namespace leeway::worker {

PublishedModels::PublishedModels(runtime::Loop* loop)
    : loop_(loop), deadline_(loop, [this] { OnDeadline(); }) {}

void PublishedModels::On(proto::Published published) {
  const std::string name = published.model;
  proto::Published& known = models_[name];
  const bool newer =
      known.versions.empty() || known.versions.back().version < published.versions.back().version;
  if (!newer) return;
  known = std::move(published);
  std::list<Waiting> over = Take([&](const Waiting& waiting) {
    return waiting.model == name && FindNewer(name, waiting.version) != nullptr;
  });
  for (Waiting& waiting : over) waiting.done(models_[name]);
}

const proto::Published* PublishedModels::FindNewer(const std::string& model,
                                                   std::uint64_t version) const {
  const auto found = models_.find(model);
  return found != models_.end() && found->second.versions.back().version > version ? &found->second
                                                                                   : nullptr;
}

void PublishedModels::WhenNewer(const std::string& model, std::uint64_t version,
                                absl::Duration timeout, Done done) {
  if (const proto::Published* const newer = FindNewer(model, version)) return done(*newer);
  if (timeout <= absl::ZeroDuration()) {
    return done(absl::DeadlineExceededError(
        absl::StrCat("model '", model, "' has no version after ", version)));
  }
  const absl::Time now = loop_->Now();
  waiting_.push_back({.model = model,
                      .version = version,
                      .started = now,
                      .deadline = now + timeout,
                      .done = std::move(done)});
  deadline_.SetBy(now + timeout);
}

template <class IsOver>
std::list<PublishedModels::Waiting> PublishedModels::Take(const IsOver& is_over) {
  std::list<Waiting> over;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto next = std::next(it);
    if (is_over(*it)) over.splice(over.end(), waiting_, it);
    it = next;
  }
  return over;
}

void PublishedModels::OnDeadline() {
  const absl::Time now = loop_->Now();
  std::list<Waiting> over = Take([now](const Waiting& one) { return one.deadline <= now; });
  for (const Waiting& waiting : waiting_) deadline_.SetBy(waiting.deadline);
  for (Waiting& waiting : over) {
    waiting.done(absl::DeadlineExceededError(
        absl::StrCat("model '", waiting.model, "' has had no version after ", waiting.version,
                     " for ", runtime::FormatDuration(now - waiting.started))));
  }
}

void PublishedModels::Fail(const absl::Status& why) {
  for (Waiting& waiting : Take([](const Waiting&) { return true; })) waiting.done(why);
}

}  // namespace leeway::worker
