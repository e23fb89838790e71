#include "tests/simulation/log_history.h"

#include <algorithm>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/random.h"

namespace leeway::simulation {
namespace {

bool IsLogEntry(proto::LogEntryKind kind) {
  switch (kind) {
    case proto::LogEntryKind::kPush:
    case proto::LogEntryKind::kUpdate:
    case proto::LogEntryKind::kClose:
    case proto::LogEntryKind::kEnter:
    case proto::LogEntryKind::kVersion:
    case proto::LogEntryKind::kRefusal:
    case proto::LogEntryKind::kConfirm:
      return true;
    default:
      return false;
  }
}

std::uint64_t Hash(const runtime::Buffer& bytes) {
  return runtime::StableHash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Of everything that is part of the entry, and not of the stream that it comes with.
std::uint64_t DigestOf(proto::Replicate entry, const van::Message& message) {
  entry.epoch = entry.stream = entry.entry = 0;
  std::uint64_t digest = Hash(proto::Encode(entry));
  for (const runtime::Buffer& frame : message.payload) {
    digest = runtime::StableHash(digest ^ Hash(frame));
  }
  return digest;
}

}  // namespace

void LogHistory::Hear(const std::string& from_host, const van::Message& message) {
  if (!absl::StartsWith(from_host, Name(Role::kServer))) return;
  van::Message content = message;
  const auto decoded =
      proto::Decode(content.header, {content.payload.data(), content.payload.size()});
  if (!decoded.ok()) return;
  if (const auto* const ack = std::get_if<proto::ReplicateAck>(&*decoded)) {
    HearAck(from_host, *ack);
  } else if (const auto* const entry = std::get_if<proto::Replicate>(&*decoded)) {
    if (IsLogEntry(entry->kind)) HearEntry(from_host, *entry, DigestOf(*entry, message));
  }
}

// A tail that was the head before has entries that its new head may not have yet: that it says so
// of what it was the first to send commits nothing.
void LogHistory::HearAck(const std::string& from, const proto::ReplicateAck& ack) {
  Log& log = logs_[ack.shard];
  for (auto entry = log.origins.upper_bound(ack.committed); entry != log.origins.begin();) {
    --entry;
    if (entry->first <= log.committed) return;
    if (entry->second == from) continue;
    log.committed = entry->first;
    log.committed_in = log.epoch;
    return;
  }
}

void LogHistory::HearEntry(const std::string& from, const proto::Replicate& entry,
                           std::uint64_t digest) {
  ++entries_;
  Log& log = logs_[entry.shard];
  const auto described = [&] {
    return absl::StrCat(from, " sends as entry ", entry.index, " of shard ", entry.shard,
                        " in epoch ", entry.epoch, " (kind ", static_cast<int>(entry.kind), ")");
  };
  log.epoch = std::max(log.epoch, entry.epoch);
  const bool is_new = log.entries[entry.index].insert(digest).second;
  // A head that has been deposed and does not know it may send what will never be committed.
  if (is_new && entry.index <= log.committed && entry.epoch >= log.committed_in) {
    checker_->Fail("committed entries stay",
                   absl::StrCat(described(), " what nobody had sent before ", log.committed,
                                " was committed"));
  }
  if (entry.kind == proto::LogEntryKind::kUpdate) return;  // the entry's last part comes later
  log.origins.try_emplace(entry.index, from);
  const auto [known, first] = log.of_epoch.try_emplace({entry.epoch, entry.index}, digest);
  if (!first && known->second != digest) {
    checker_->Fail("one head an epoch",
                   absl::StrCat(described(), " another one than was sent before"));
  }
}

}  // namespace leeway::simulation
