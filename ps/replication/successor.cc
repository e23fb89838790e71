#include "ps/replication/successor.h"

#include <iterator>
#include <utility>

#include "runtime/base/mutants.h"

namespace leeway::ps {

Downstream::~Downstream() {
  for (const Item& item : backlog_) budget_->bytes -= item.bytes();
}

void Downstream::Fill(Item begin, std::vector<Item> pieces) {
  outbox_.Append(std::move(begin));
  pieces_.assign(std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
}

void Downstream::Append(Item item) {
  if (pieces_.empty() && (backlog_.empty() || runtime::Planted<"backlog-overtaken">())) {
    outbox_.Append(std::move(item));
    return;
  }
  budget_->bytes += item.bytes();
  backlog_.push_back(std::move(item));
}

void Downstream::Pump(absl::Time now, const std::function<bool(Item*)>& send) {
  for (;;) {
    Item* next = outbox_.Next();
    if (next == nullptr) {
      if (!outbox_.all_sent() || !Refill()) return;
      continue;
    }
    if (!send(next)) return;
    outbox_.NoteSent(now);
  }
}

// One at a time, so that what is still to come holds no more memory than it must.
bool Downstream::Refill() {
  const bool early = runtime::Planted<"backlog-before-pieces">() && !backlog_.empty();
  std::deque<Item>& from = pieces_.empty() || early ? backlog_ : pieces_;
  if (from.empty()) return false;
  if (&from == &backlog_) budget_->bytes -= from.front().bytes();
  outbox_.Append(std::move(from.front()));
  from.pop_front();
  return true;
}

}  // namespace leeway::ps
