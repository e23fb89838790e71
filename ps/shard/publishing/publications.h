// The making of publications at the head of one shard: tables are frozen at once, or, where one of
// them is of BSP, when all clocks below the publication's have closed and no later one has. The
// other replicas freeze at the same entry of the log.
//
// On the data thread's loop. One publication at a time is under way.
#ifndef LEEWAY_PS_SHARD_PUBLISHING_PUBLICATIONS_H_
#define LEEWAY_PS_SHARD_PUBLISHING_PUBLICATIONS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "ps/shard/state/shard_state.h"

namespace leeway::ps {

class Publications {
 public:
  using Done = std::function<void(const absl::Status&)>;

  explicit Publications(ShardState* state) : state_(state) {}

  // `done` once the tables are frozen here; another publication that is under way fails.
  // OUT_OF_RANGE: the clock has passed. NOT_FOUND: there is no such table.
  // UNIMPLEMENTED: one is not dense.
  absl::Status Begin(const proto::Publish& publish, Done done);
  void Abandon(const absl::Status& why);

  // Clock `clock` closes now: a publication of the clocks below it is made first.
  void BeforeClosing(std::uint64_t clock);
  // After clocks have closed.
  void MakeIfDue();

 private:
  struct UnderWay {
    proto::Publish publish;
    Done done;
  };

  void Make(const proto::Publish& publish);
  void Finish();

  ShardState* const state_;
  std::optional<UnderWay> under_way_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_PUBLISHING_PUBLICATIONS_H_
