// A server's part in publications: it has the data threads freeze the shards that they head, tells
// the scheduler when all are frozen, and has replicas forget what is not kept any more.
//
// Lives on the server's control loop. One publication at a time is under way.
#ifndef LEEWAY_PS_CONTROL_SERVER_PUBLICATIONS_H_
#define LEEWAY_PS_CONTROL_SERVER_PUBLICATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "proto/messages/messages.h"
#include "ps/data/data_thread.h"
#include "runtime/loop/loop.h"

namespace leeway::ps {

class ServerPublications {
 public:
  // As in ServerCheckpoints.
  using OnEveryThread = std::function<void(
      std::function<void(DataThread*, std::uint32_t index)> task, absl::AnyInvocable<void()> done)>;
  struct Setup {
    runtime::Loop* loop = nullptr;  // the control loop
    OnEveryThread on_every_thread;
    std::function<void(proto::AnyMessage)> tell_scheduler;
  };

  explicit ServerPublications(Setup setup) : setup_(std::move(setup)) {}

  // From the scheduler, which says it again until it is answered.
  void On(const proto::Publish& publish);
  void On(const proto::Published& published);

 private:
  struct UnderWay {
    proto::PublishReply reply;
    std::uint32_t frozen = 0;  // shards
    bool begun = false;        // on all threads: reply.shards is known
    bool answered = false;
  };

  void AnswerIfOver(const std::shared_ptr<UnderWay>& under_way);

  const Setup setup_;
  std::shared_ptr<UnderWay> under_way_;
  std::map<std::string, std::vector<std::uint64_t>> kept_;  // publications, by model
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_SERVER_PUBLICATIONS_H_
