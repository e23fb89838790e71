#include "tests/simulation/version_ledger.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {

void VersionLedger::OnAsked(const SimTable& table, const proto::Request& request) {
  const proto::RequestId& id = request.id;
  Asked& asked = asked_[{id.worker, id.incarnation, id.shard, id.sequence}];
  asked.table = &table;
  asked.block = static_cast<std::uint32_t>(request.block);
  asked.have.insert(request.have);
}

const VersionLedger::Contents& VersionLedger::Of(const SimTable& table, std::uint32_t block) const {
  static const Contents kNone;
  const auto found = contents_.find({table.index, block});
  return found == contents_.end() ? kNone : found->second;
}

std::string VersionLedger::OnAnswered(const proto::Reply& reply,
                                      std::span<const runtime::Buffer> payload) {
  const proto::RequestId& id = reply.id;
  const auto found = asked_.find({id.worker, id.incarnation, id.shard, id.sequence});
  if (found == asked_.end() || !reply.result.ok()) return "";
  const Asked& asked = found->second;
  const std::string block =
      absl::StrCat("block ", asked.block, " of '", asked.table->spec.name, "' (",
                   asked.table->spec.codec, ", ", asked.table->spec.consistency.ToString(), "): ");
  if (!reply.coded || payload.size() != 1) return block + "the answer is not encoded";
  // It answers one of those that were sent; the newest that fits.
  std::string wrong;
  for (auto have = asked.have.rbegin(); have != asked.have.rend(); ++have) {
    Contents told;
    std::string why = Follow(asked, reply, payload[0].bytes(), *have, &told);
    if (wrong.empty()) wrong = why;
    if (!why.empty()) continue;
    const std::uint64_t version = reply.parts.empty() ? *have : reply.parts.back().version;
    contents_[{asked.table->index, asked.block}].merge(told);
    wrong = JudgeStaleness(asked, reply, version);
    break;
  }
  return wrong.empty() ? "" : block + wrong;
}

std::string VersionLedger::Follow(const Asked& asked, const proto::Reply& reply,
                                  std::span<const std::byte> bytes, std::uint64_t have,
                                  Contents* told) const {
  const SimTable& table = *asked.table;
  const Contents& known = Of(table, asked.block);
  const std::size_t elements = table.ElementsOf(asked.block);
  const CodecShape shape = compress::BlockShape(table.spec, table.codec, elements);
  const auto held = known.find(have);
  if (have != 0 && held == known.end()) {
    return absl::StrCat("a worker holds version ", have, ", of which nobody was told");
  }
  std::vector<float> content;
  if (have != 0) content = held->second;
  std::uint64_t version = have;
  for (const proto::ReplyPart& part : reply.parts) {
    if (bytes.size() < part.bytes) return "the answer is cut short";
    const std::span<const std::byte> its = bytes.first(part.bytes);
    bytes = bytes.subspan(part.bytes);
    if (part.version <= version && version != 0) {
      return absl::StrCat("version ", part.version, " is to follow on ", version);
    }
    if (part.whole && part.codec == 0) {
      content.resize(its.size() / sizeof(float));
      std::memcpy(content.data(), its.data(), its.size());
    } else if (part.whole) {
      content.resize(elements);
      if (!table.codec.codec->Decode(its, shape, content.data()).ok()) return "it is malformed";
    } else {
      if (content.size() != elements) return "something is to follow on nothing";
      if (!table.codec.codec->DecodeAdd(its, shape, 1, content.data()).ok()) {
        return "it is malformed";
      }
    }
    version = part.version;
    const auto before = known.find(version);
    if (before != known.end() &&
        (before->second.size() != content.size() ||
         std::memcmp(before->second.data(), content.data(), content.size() * sizeof(float)) != 0)) {
      return absl::StrCat("version ", version, " has two contents, the first of them ",
                          before->second[0], ", …, and the second, told to who held version ", have,
                          ", ", content[0], ", …");
    }
    (*told)[version] = content;
  }
  if (version == 0) return "nothing is told to who holds nothing";
  return "";
}

// What an answer says of itself: it has all that living workers have pushed in the clocks below
// `slowest_clock`.
std::string VersionLedger::JudgeStaleness(const Asked& asked, const proto::Reply& reply,
                                          std::uint64_t version) const {
  std::uint64_t below = reply.slowest_clock;
  if (asked.table->bsp()) {  // the view that was asked for, though later clocks may be over as well
    below = std::min(below, reply.clock + (reply.op == proto::Op::kPushPull ? 1 : 0));
  }
  const std::uint64_t promised =
      UpdatesPromised(*asked.table, asked.block, *history_,
                      [&](std::uint32_t worker, std::size_t, const Push& push) {
                        return push.clock < below && push.outcome != Outcome::kFailed &&
                               !history_->lives[worker].WasKilled(push.incarnation);
                      });
  if (version > promised) return "";
  return absl::StrCat("version ", version, " is told to have all of the clocks below ", below,
                      ", which are ", promised, " updates");
}

}  // namespace leeway::simulation
