#include "ps/shard/publishing/publications.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shard/state/log_entry_conversion.h"

namespace leeway::ps {

absl::Status Publications::Begin(const proto::Publish& publish, Done done) {
  Abandon(absl::AbortedError("another publication has begun"));
  bool held = false;
  for (const auto& [id] : publish.tables) {
    const Table* const table = state_->context->tables.Find(id);
    if (table == nullptr) {
      return absl::NotFoundError(absl::StrCat("table ", id, " is not installed on this server"));
    }
    if (table->spec().kind != TableKind::kDense) {
      return absl::UnimplementedError(absl::StrCat("table '", table->spec().name,
                                                   "' is not dense: only dense tables are "
                                                   "published"));
    }
    held = held || table->is_bsp();
  }
  if (held && state_->closed > publish.clock) {
    return absl::OutOfRangeError(
        absl::StrCat("shard ", state_->id, " is beyond clock ", publish.clock));
  }
  under_way_ = {publish, std::move(done)};
  held ? MakeIfDue() : Finish();
  return absl::OkStatus();
}

void Publications::Abandon(const absl::Status& why) {
  if (std::optional<UnderWay> under_way = std::exchange(under_way_, std::nullopt)) {
    under_way->done(why);
  }
}

void Publications::BeforeClosing(std::uint64_t clock) {
  if (under_way_.has_value() && clock >= under_way_->publish.clock) Finish();
}

void Publications::MakeIfDue() {
  if (!under_way_.has_value()) return;
  if (state_->closed < under_way_->publish.clock && state_->clocks.living() != 0) return;
  Finish();
}

void Publications::Finish() {
  const UnderWay under_way = *std::exchange(under_way_, std::nullopt);
  Make(under_way.publish);
  under_way.done(absl::OkStatus());
}

// Each shard has an entry of at least one table, so that replicas know of the publication.
void Publications::Make(const proto::Publish& publish) {
  for (const auto& [id] : publish.tables) {
    const bool has_content = state_->stores.all().contains(id);
    if (!has_content && id != publish.tables.front().id) continue;
    const Table& table = *state_->context->tables.Find(id);
    state_->published.Freeze(table, &state_->stores, publish.publication);
    state_->AppendToLog(PublishEntry(table, publish.publication));
  }
}

}  // namespace leeway::ps
