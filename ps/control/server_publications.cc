#include "ps/control/server_publications.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace leeway::ps {

void ServerPublications::On(const proto::Publish& publish) {
  const std::uint64_t newest = under_way_ == nullptr ? 0 : under_way_->reply.publication;
  if (publish.publication < newest) return;
  if (publish.publication == newest) {
    if (under_way_->answered) setup_.tell_scheduler(under_way_->reply);
    return;
  }
  auto under_way = std::make_shared<UnderWay>();
  under_way->reply.publication = publish.publication;
  under_way_ = under_way;
  const Publications::Done done = [this, under_way](const absl::Status& made) {
    setup_.loop->Post([this, under_way, made] {
      ++under_way->frozen;
      under_way->reply.result.Update(made);
      AnswerIfOver(under_way);
    });
  };
  struct Begun {
    std::mutex mutex;
    std::uint32_t shards = 0;
    std::uint64_t closed = 0;
    absl::Status result;
  };
  auto begun = std::make_shared<Begun>();
  setup_.on_every_thread(
      [publish, done, begun](DataThread* thread, std::uint32_t) {
        const absl::StatusOr<std::uint32_t> shards = thread->BeginPublications(publish, done);
        const std::lock_guard lock(begun->mutex);
        begun->closed = std::max(begun->closed, thread->NewestClock());
        begun->result.Update(shards.status());
        if (shards.ok()) begun->shards += *shards;
      },
      [this, under_way, begun] {
        under_way->begun = true;
        under_way->reply.shards = begun->shards;
        under_way->reply.closed = begun->closed;
        under_way->reply.result.Update(begun->result);
        AnswerIfOver(under_way);
      });
}

void ServerPublications::AnswerIfOver(const std::shared_ptr<UnderWay>& under_way) {
  if (under_way->answered || !under_way->begun || under_way != under_way_) return;
  const proto::PublishReply& reply = under_way->reply;
  if (reply.result.ok() && under_way->frozen < reply.shards) return;
  under_way->answered = true;
  setup_.tell_scheduler(reply);
}

void ServerPublications::On(const proto::Published& published) {
  std::vector<std::uint64_t>& versions = kept_[published.model];
  versions.clear();
  for (const auto& version : published.versions) versions.push_back(version.publication);
  auto kept = std::make_shared<std::set<std::uint64_t>>();
  for (const auto& [model, numbers] : kept_) kept->insert(numbers.begin(), numbers.end());
  setup_.on_every_thread(
      [kept](DataThread* thread, std::uint32_t) { thread->KeepPublications(*kept); }, [] {});
}

}  // namespace leeway::ps
