#include "ps/store/dense/versions.h"

#include <algorithm>
#include <utility>

namespace leeway::ps {

void Versions::StartAt(std::uint64_t version, std::uint64_t slowest) {
  version_ = version;
  slowest_ = slowest;
  forgotten_ = false;
  in_vain_ = 0;
  messages_.clear();
  bytes_ = 0;
}

void Versions::Append(std::uint64_t version, std::uint64_t slowest, std::uint32_t codec,
                      runtime::Buffer message, std::uint64_t bytes_max) {
  bytes_ += message.size();
  messages_.push_back(
      {.from = version_, .version = version, .codec = codec, .bytes = std::move(message)});
  version_ = version;
  slowest_ = slowest;
  forgotten_ = false;
  in_vain_ = 0;
  while (messages_.size() > kMessagesMax || (bytes_ > bytes_max && messages_.size() > 1)) {
    bytes_ -= messages_.front().bytes.size();
    messages_.pop_front();
  }
}

bool Versions::IsDue(const Since& since) const {
  if (forgotten_ || since.slowest > slowest_ + kLagMax) return true;
  if (!since.reader_holds) return false;
  const std::uint64_t rounds_max = kRoundsMax * std::max<std::uint64_t>(1, since.workers);
  return since.slowest > slowest_ || since.updates >= rounds_max || in_vain_ >= rounds_max;
}

bool Versions::MessagesSince(std::uint64_t have, std::uint64_t bytes_max,
                             std::vector<proto::ReplyPart>* parts,
                             std::vector<runtime::Buffer>* messages) const {
  if (have == version_) return true;
  auto first = std::find_if(messages_.begin(), messages_.end(),
                            [&](const Message& message) { return message.from == have; });
  if (first == messages_.end()) return false;
  std::uint64_t bytes = 0;
  for (auto it = first; it != messages_.end(); ++it) bytes += it->bytes.size();
  if (bytes >= bytes_max) return false;
  for (auto it = first; it != messages_.end(); ++it) {
    parts->push_back({.version = it->version, .bytes = it->bytes.size(), .codec = it->codec});
    messages->push_back(it->bytes);
  }
  return true;
}

}  // namespace leeway::ps
