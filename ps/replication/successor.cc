#include "ps/replication/successor.h"

#include <iterator>
#include <utility>

namespace leeway::ps {

Successor::~Successor() {
  for (const LogEntry& entry : backlog_) budget_->bytes -= entry.bytes();
}

void Successor::BeginTransfer(LogEntry begin, std::vector<LogEntry> pieces) {
  sender_.Append(std::move(begin));
  pieces_.assign(std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
}

void Successor::Append(LogEntry entry) {
  if (pieces_.empty() && backlog_.empty()) {
    sender_.Append(std::move(entry));
    return;
  }
  budget_->bytes += entry.bytes();
  backlog_.push_back(std::move(entry));
}

void Successor::Pump(absl::Time now, const std::function<bool(LogEntry*)>& send) {
  for (;;) {
    LogEntry* next = sender_.Next();
    if (next == nullptr) {
      if (!sender_.all_sent() || !QueueNext()) return;
      continue;
    }
    if (!send(next)) return;
    sender_.NoteSent(now);
  }
}

// One at a time, so that pieces that are still to be sent hold no more memory than they must.
bool Successor::QueueNext() {
  std::deque<LogEntry>& from = pieces_.empty() ? backlog_ : pieces_;
  if (from.empty()) return false;
  if (&from == &backlog_) budget_->bytes -= from.front().bytes();
  sender_.Append(std::move(from.front()));
  from.pop_front();
  return true;
}

}  // namespace leeway::ps
