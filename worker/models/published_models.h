// The newest versions of published models that this process has heard of from the scheduler, and
// the calls that wait for newer ones. Lives on the core's loop.
#ifndef LEEWAY_WORKER_MODELS_PUBLISHED_MODELS_H_
#define LEEWAY_WORKER_MODELS_PUBLISHED_MODELS_H_

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"

namespace leeway::worker {

class PublishedModels {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<proto::Published>)>;

  explicit PublishedModels(runtime::Loop* loop);

  // From the scheduler. Older news than what is known is ignored.
  void On(proto::Published published);
  // `done` once the model has a version above `version`. DEADLINE_EXCEEDED after `timeout`.
  void WhenNewer(const std::string& model, std::uint64_t version, absl::Duration timeout,
                 Done done);
  // Ends all calls with `why`.
  void Fail(const absl::Status& why);

 private:
  struct Waiting {
    std::string model;
    std::uint64_t version = 0;
    absl::Time started, deadline;
    Done done;
  };

  const proto::Published* FindNewer(const std::string& model, std::uint64_t version) const;
  void OnDeadline();
  template <class IsOver>
  std::list<Waiting> Take(const IsOver& is_over);

  runtime::Loop* const loop_;
  std::map<std::string, proto::Published> models_;  // by name
  std::list<Waiting> waiting_;
  runtime::Timer deadline_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_MODELS_PUBLISHED_MODELS_H_
