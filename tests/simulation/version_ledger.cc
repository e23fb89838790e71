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

const VersionLedger::Contents& VersionLedger::ContentsIn(const ByBlock& places,
                                                         const SimTable& table,
                                                         std::uint32_t block) {
  static const Contents kNone;
  const auto found = places.find({table.index, block});
  return found == places.end() ? kNone : found->second;
}

bool VersionLedger::WasToldAsItIs(const SimTable& table, std::uint32_t block,
                                  std::span<const float> values) const {
  const auto found = as_they_were_.find({table.index, block});
  if (found == as_they_were_.end()) return false;
  const auto is = [&](const std::vector<float>& told) {
    return std::equal(values.begin(), values.end(), told.begin());
  };
  return std::ranges::any_of(found->second, is);
}

std::string VersionLedger::TakeAsItIs(const Asked& asked, std::span<const std::byte> bytes) {
  const SimTable& table = *asked.table;
  const auto may = [](const compress::TableCodec& codec) { return !codec.versions; };
  if (std::ranges::none_of(table.codecs.choices, may)) return "the answer is not encoded";
  std::vector<float> values(table.ElementsOf(asked.block));
  if (bytes.size() != values.size() * sizeof(float)) return "the answer has another size";
  std::memcpy(values.data(), bytes.data(), bytes.size());
  as_they_were_[{table.index, asked.block}].insert(std::move(values));
  return "";
}

std::string VersionLedger::TakeItself(const Asked& asked, const proto::Reply& reply,
                                      const compress::TableCodec& codec,
                                      std::span<const std::byte> bytes) {
  const SimTable& table = *asked.table;
  std::vector<float> content(table.ElementsOf(asked.block));
  const CodecShape shape = compress::BlockShape(table.spec, codec, content.size());
  if (!codec.codec->Decode(bytes, shape, content.data()).ok()) return "it is malformed";
  const std::uint64_t version = reply.parts[0].version;
  const auto [known, fresh] = itself_[{table.index, asked.block}].try_emplace(version, content);
  if (!fresh && known->second != content) {
    return absl::StrCat("version ", version, " of the block itself has two contents, the first of ",
                        "them ", known->second[0], ", …, and the second ", content[0], ", …");
  }
  return JudgeStaleness(asked, reply, version);
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
  if (payload.size() != 1) return block + "the answer has not one frame";
  const auto named = [&](const std::string& why) { return why.empty() ? "" : block + why; };
  if (!reply.coded) return named(TakeAsItIs(asked, payload[0].bytes()));
  const compress::TableCodec* const codec =
      reply.parts.size() == 1 ? asked.table->codecs.Find(reply.parts[0].codec) : nullptr;
  if (codec != nullptr && reply.parts[0].whole) {
    if (codec->versions) return block + "a whole block has a codec of differences";
    return named(TakeItself(asked, reply, *codec, payload[0].bytes()));
  }
  // It answers one of the requests that were sent; the newest that fits.
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
  return named(wrong);
}

std::string VersionLedger::Follow(const Asked& asked, const proto::Reply& reply,
                                  std::span<const std::byte> bytes, std::uint64_t have,
                                  Contents* told) const {
  const SimTable& table = *asked.table;
  const Contents& known = Of(table, asked.block);
  const std::size_t elements = table.ElementsOf(asked.block);
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
    } else {
      const compress::TableCodec* const codec = table.codecs.Find(part.codec);
      if (codec == nullptr || !codec->versions || part.whole) return "it has the wrong codec";
      if (content.size() != elements) return "something is to follow on nothing";
      const CodecShape shape = compress::BlockShape(table.spec, *codec, elements);
      if (!codec->codec->DecodeAdd(its, shape, 1, content.data()).ok()) return "it is malformed";
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

// Checks an answer's own promise: it includes all pushes of living workers in the clocks below
// `slowest_clock`.
std::string VersionLedger::JudgeStaleness(const Asked& asked, const proto::Reply& reply,
                                          std::uint64_t version) const {
  std::uint64_t below = reply.slowest_clock;
  if (asked.table->bsp()) {  // the view that was asked for, though later clocks may have closed too
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
