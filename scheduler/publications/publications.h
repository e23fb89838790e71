// The publications of a running cluster: versions of models, each a named set of tables as of one
// moment. Has every server freeze its shards, and when all have, tells servers, workers and readers
// of the new version. If an attempt fails (a server died, shards moved, the clock had passed) it
// begins anew until its time is up. docs/publishing.md has the protocol.
//
// Knows no network. Lives on the scheduler's loop. One publication at a time is made; at most
// kPublishesWaitingMax wait. The newest LEEWAY_VERSIONS_KEPT versions of a model are kept.
#ifndef LEEWAY_SCHEDULER_PUBLICATIONS_PUBLICATIONS_H_
#define LEEWAY_SCHEDULER_PUBLICATIONS_PUBLICATIONS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

inline constexpr std::size_t kPublishesWaitingMax = 64;
inline constexpr std::size_t kModelsMax = 256;

class Publications {
 public:
  // The cluster as it is now.
  struct Facts {
    absl::Status ready;  // or why nothing can be published
    std::uint64_t epoch = 0;
    std::uint32_t num_shards = 0;
    std::vector<std::uint32_t> servers;           // the living ones' nodes
    std::map<std::uint32_t, std::string> tables;  // the installed ones' names, by id
  };
  using GetFacts = std::function<Facts()>;
  using Tell = std::function<void(std::uint32_t node, const proto::AnyMessage& message)>;
  using TellAll = std::function<void(const proto::Published& published)>;

  Publications(const Config* config, runtime::Loop* loop, const MembershipTable* members,
               GetFacts facts, Tell tell, TellAll tell_all);
  ~Publications() { *self_ = nullptr; }
  Publications(const Publications&) = delete;
  Publications& operator=(const Publications&) = delete;

  // publish MODEL at:CLOCK TABLE,TABLE,… …: tables by id. Answered with the version once it is
  // there.
  void Command(const AdminService::Arguments& arguments, const AdminService::Answer& answer);
  // model MODEL: the names of its tables, and its versions. Without one: all models.
  void Describe(const AdminService::Arguments& arguments, const AdminService::Answer& answer) const;
  // From servers.
  void OnReply(std::uint32_t node, const proto::PublishReply& reply);
  // To be called often: resends what is unanswered, and ends what has taken too long.
  void Tick();
  // The cluster ends.
  void Stop();

  // By name. What a node that joins is told.
  const std::map<std::string, proto::Published>& models() const { return models_; }
  // Grows whenever models() changes.
  std::uint64_t changes() const { return changes_; }
  // Goes on where another scheduler was. Servers take no lower number than they have seen, so
  // `generation` grows with every start of the scheduler.
  void Restore(const std::vector<proto::Published>& models, std::uint64_t generation);

 private:
  struct Wish {
    proto::Published model;  // without versions
    std::uint64_t clock = 0;
    AdminService::Answer answer;
    absl::Time deadline;
  };
  enum class Phase { kIdle, kFreezing, kPausing };

  absl::StatusOr<Wish> Parse(const AdminService::Arguments& arguments) const;
  void NextWish();
  void Begin();
  void SayAgain();
  void TryAgain(const absl::Status& why);
  void OnAllFrozen();
  void Over(const absl::StatusOr<std::string>& result);
  absl::Status TimedOut() const;
  absl::Time Now() const { return loop_->Now(); }

  const Config* const config_;
  runtime::Loop* const loop_;
  const MembershipTable* const members_;
  const GetFacts get_facts_;
  const Tell tell_;
  const TellAll tell_all_;
  std::map<std::string, proto::Published> models_;
  std::uint64_t changes_ = 0;
  bool stopped_ = false;
  std::deque<Wish> wishes_;  // the first one is being seen to

  // Of the first wish.
  Phase phase_ = Phase::kIdle;
  std::uint64_t publication_ = 0;  // the number of the attempt; grows for ever
  std::uint64_t clock_ = 0;
  Facts facts_;
  std::set<std::uint32_t> awaited_;  // servers that have not answered
  std::uint32_t frozen_ = 0;         // shards
  absl::Time resend_at_ = absl::InfiniteFuture();
  absl::Duration pause_ = absl::ZeroDuration();
  absl::Status trouble_;  // of the last attempt

  // For calls on their way through the loop: null once this object has gone.
  std::shared_ptr<Publications*> self_ = std::make_shared<Publications*>(this);
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_PUBLICATIONS_PUBLICATIONS_H_
