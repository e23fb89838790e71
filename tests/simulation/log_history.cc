#include "tests/simulation/log_history.h"

#include <algorithm>
#include <variant>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"

namespace leeway::simulation {
namespace {

std::size_t HashOf(const proto::ClientSession& window) {
  const auto& [rank, incarnation, clock, since, admitted, admitted_held] = window;
  return absl::HashOf(rank, incarnation, clock, since, admitted, admitted_held);
}

std::size_t HashOf(const proto::Refusal& refusal) {
  const auto& [worker, incarnation, sequence, held, with_earlier, status] = refusal;
  return absl::HashOf(worker, incarnation, sequence, held, with_earlier, status.code(),
                      status.message());
}

// A digest of everything that belongs to the entry, and not to the stream that it is sent in, or to
// what its sender knows of the cluster. (All fields are named, so that a new one is not forgotten.)
std::uint64_t DigestOf(const proto::Replicate& sent, const van::Message& message) {
  const auto& [shard, epoch, stream, entry, kind, index, worker, incarnation, sequence, table,
               table_kind, dtype, clock, block, keys, elements, state_slots, has_learning_rate,
               learning_rate, workers, refusals, pushed_until, codec, version, whole, weight,
               collected, mean_of, pushes, settings, map_version, closed_of, settled] = sent;
  std::size_t digest =
      absl::HashOf(shard, kind, index, worker, incarnation, sequence, table, table_kind, dtype,
                   clock, block, keys, elements, state_slots, has_learning_rate, learning_rate,
                   pushed_until, codec, version, whole, settings, workers.size(), refusals.size(),
                   weight, collected, mean_of, pushes, settled);
  for (const proto::ClientSession& window : workers) digest = absl::HashOf(digest, HashOf(window));
  for (const proto::Refusal& refusal : refusals) digest = absl::HashOf(digest, HashOf(refusal));
  for (const proto::TableClock& of : closed_of) {
    digest = absl::HashOf(digest, of.table, of.closed);
  }
  for (const runtime::Buffer& frame : message.payload) {
    digest = absl::HashOf(
        digest, absl::string_view(reinterpret_cast<const char*>(frame.data()), frame.size()));
  }
  return digest;
}

}  // namespace

bool LogHistory::IsOfEntry(proto::LogEntryKind kind) {
  switch (kind) {
    case proto::LogEntryKind::kPush:
    case proto::LogEntryKind::kUpdate:
    case proto::LogEntryKind::kClose:
    case proto::LogEntryKind::kEnter:
    case proto::LogEntryKind::kVersion:
    case proto::LogEntryKind::kRefusal:
    case proto::LogEntryKind::kConfirm:
    case proto::LogEntryKind::kCollected:
    case proto::LogEntryKind::kEffect:
    case proto::LogEntryKind::kCall:
    case proto::LogEntryKind::kPublish:
      return true;
    default:
      return false;
  }
}

void LogHistory::Hear(const van::Overheard& heard) {
  if (!absl::StartsWith(heard.from, Name(Role::kServer))) return;
  if (const auto* const ack = std::get_if<proto::ReplicateAck>(&heard.message)) {
    HearAck(heard.to, *ack);
  } else if (const auto* const sent = std::get_if<proto::Replicate>(&heard.message)) {
    if (IsOfEntry(sent->kind)) HearEntry(heard.from, *sent, DigestOf(*sent, heard.raw));
    const bool whole = IsOfEntry(sent->kind) && !proto::IsPartOfNext(sent->kind);
    const bool begins = sent->kind == proto::LogEntryKind::kTransferBegin;
    if (whole || begins) {
      Log& log = logs_[sent->shard];
      if (begins) log.in_states = std::max(log.in_states, sent->index);
      std::uint64_t& brought = log.brought[{heard.from, sent->stream}];
      brought = std::max(brought, sent->index);
    }
  }
}

// A tail that was in another place of the chain before may have entries that the members before it
// do not have yet. Its acknowledgement commits those that they have sent it.
void LogHistory::HearAck(const std::string& to, const proto::ReplicateAck& ack) {
  Log& log = logs_[ack.shard];
  const auto brought = log.brought.find({to, ack.stream});
  if (brought == log.brought.end()) return;
  const std::uint64_t committed = std::min(ack.committed, brought->second);
  if (committed <= log.committed) return;
  log.committed = committed;
  log.committed_in = log.epoch;
}

void LogHistory::HearEntry(const std::string& from, const proto::Replicate& sent,
                           std::uint64_t digest) {
  ++entries_;
  Log& log = logs_[sent.shard];
  const auto entry = [&] {
    return absl::StrCat(from, " sends as entry ", sent.index, " of shard ", sent.shard,
                        " in epoch ", sent.epoch, " (kind ", static_cast<int>(sent.kind), ")");
  };
  log.epoch = std::max(log.epoch, sent.epoch);
  std::set<std::uint64_t>& contents = log.entries[sent.index];
  const std::pair sender(from, sent.epoch);
  if (contents.empty() && sent.index <= log.in_states) log.first_sent_by[sent.index] = sender;
  const auto first_sent = log.first_sent_by.find(sent.index);
  const bool was_in_states_alone =
      first_sent != log.first_sent_by.end() && first_sent->second == sender;
  const bool is_new = contents.insert(digest).second;
  // A deposed head that does not know it may send entries that will never be committed.
  if (is_new && !was_in_states_alone && sent.index <= log.committed &&
      sent.epoch >= log.committed_in) {
    checker_->Fail("committed entries stay", absl::StrCat(entry(), " what nobody had sent before ",
                                                          log.committed, " was committed"));
  }
  if (proto::IsPartOfNext(sent.kind)) return;  // the entry's last part comes later
  const auto [known, first] = log.of_epoch.try_emplace({sent.epoch, sent.index}, digest);
  if (!first && known->second != digest) {
    checker_->Fail("one head an epoch", absl::StrCat(entry(), " another one than was sent before"));
  }
}

}  // namespace leeway::simulation
