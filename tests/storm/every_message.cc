#include "tests/storm/every_message.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "leeway/dtype.h"
#include "leeway/table_spec.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/fields.h"
#include "proto/messages/layout.h"
#include "proto/testing/samples.h"
#include "runtime/base/status_macros.h"
#include "tools/admin/inquiry.h"

namespace leeway::storm {
namespace {

constexpr absl::Duration kLearnPatience = absl::Seconds(10);
// A node has little time for guests: on a busy machine it answers late.
constexpr absl::Duration kAskPatience = absl::Seconds(15);
constexpr std::size_t kAskedAtOnce = 64;
// The number of a question that tells whether the message before it was taken.
constexpr std::uint64_t kMark = 0x6d61726b;
constexpr std::uint64_t kBlocksMax = 32, kKeys = 48;  // of a table

std::string TextOf(const runtime::Buffer& buffer) { return std::string(buffer.text()); }

// The visitor that gives fields with known names what they would hold in a message of a member.
class Fitter {
 public:
  Fitter(std::map<std::string, std::uint64_t> numbers, const TableSpec* spec)
      : numbers_(std::move(numbers)), spec_(spec) {}

  bool At(int) { return true; }
  bool InOrder() { return true; }
  template <proto::Number T, class Check = proto::Range>
  bool operator()(const char* name, T& value, const Check& check = {}) {
    const auto known = numbers_.find(name);
    if (known == numbers_.end() || known->second < check.least() || known->second > check.most()) {
      return true;
    }
    if constexpr (!std::is_enum_v<T>) {
      if (known->second > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return true;
    }
    value = static_cast<T>(known->second);
    return true;
  }
  bool operator()(const char* name, std::string& text, const proto::Utf8&) {
    if (absl::string_view(name) == "name") text = spec_->name;
    return true;
  }
  bool operator()(const char*, TableSpec& spec, const proto::Nested& check) {
    if (check.present) spec = *spec_;
    return true;
  }
  template <proto::Fixed M>
  bool operator()(const char*, M& m) {
    return M::FixedFields(*this, m);
  }
  template <class M, class... Each>
  bool operator()(const char*, std::vector<M>& all, const proto::Count& check, const Each&...) {
    if (!check.applies) all.clear();
    if constexpr (proto::Fixed<M>) {
      for (M& one : all) M::FixedFields(*this, one);
    }
    return true;
  }
  // Everything else stays as it is.
  bool operator()(const char*, std::string&, const proto::Reason&) { return true; }
  bool operator()(const char*, double&, const proto::Fraction& = {}) { return true; }
  bool operator()(const char*, std::map<std::string, double>&, const proto::Fraction& = {}) {
    return true;
  }
  bool operator()(const char*, Consistency&) { return true; }
  bool operator()(absl::Status&, const proto::Result& = {}) { return true; }

 private:
  const std::map<std::string, std::uint64_t> numbers_;
  const TableSpec* const spec_;
};

absl::StatusOr<std::vector<std::string>> TableNames(const std::string& scheduler) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, tools::AskForStatus({scheduler}, Role::kScheduler,
                                                                      kLearnPatience, Config())[0]);
  const nlohmann::json status = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  for (const auto& table : status.value("tables", nlohmann::json::array())) {
    names.push_back(table.value("name", ""));
  }
  return names;
}

bool IsMark(const proto::AnyMessage& message) {
  const auto* const status = std::get_if<proto::StatusReply>(&message);
  const auto* const reply = std::get_if<proto::Reply>(&message);
  return (status != nullptr && status->request == kMark) ||
         (reply != nullptr && reply->id.sequence == kMark);
}

}  // namespace

absl::StatusOr<KnownCluster> LearnCluster(const std::string& scheduler) {
  LEEWAY_ASSIGN_OR_RETURN(const std::vector<std::string> names, TableNames(scheduler));
  HostilePeer peer(scheduler, {.role = Role::kReader}, NewIncarnation());
  proto::Join join;
  join.role = Role::kReader;
  peer.Say(Framed(join));
  KnownCluster cluster;
  const auto welcome = peer.Await<proto::Welcome>(kLearnPatience);
  if (!welcome.has_value()) return absl::UnavailableError("no welcome for a reader");
  cluster.id = welcome->cluster;
  cluster.block_bytes = welcome->block_bytes;
  auto map = peer.Await<proto::ClusterMap>(kLearnPatience);
  if (!map.has_value()) return absl::UnavailableError("no map for a reader");
  cluster.map = *std::move(map);
  for (const std::string& name : names) {
    peer.Say(Framed(proto::OpenTable{.request = 1 + cluster.tables.size(), .name = name}));
    auto table = peer.Await<proto::TableReply>(kLearnPatience);
    if (!table.has_value() || !table->result.ok()) {
      return absl::UnavailableError(absl::StrCat("table ", name, " is not opened for a reader"));
    }
    cluster.tables.push_back(*std::move(table));
  }
  if (cluster.tables.empty()) return absl::NotFoundError("the cluster has no tables yet");
  return cluster;
}

std::string EveryMessage::Said::Bytes() const {
  tests::Frames frames = {tests::Data(message, payload.size())};
  frames.insert(frames.end(), payload.begin(), payload.end());
  return Framed(frames);
}

// The sample as it is, where it would contradict itself otherwise.
EveryMessage::Said EveryMessage::Fitted(Said sample, std::uint64_t incarnation) const {
  const proto::TableReply& table = cluster_->tables.front();
  Fitter fitter({{"table", table.table},
                 {"of", table.table},
                 {"shard", 0},
                 {"block", 0},
                 {"epoch", cluster_->map.epoch},
                 {"version", cluster_->map.version},
                 {"map_version", cluster_->map.version},
                 {"incarnation", incarnation},
                 {"worker", 0},
                 {"role", static_cast<std::uint64_t>(as_.role)},
                 {"cluster", cluster_->id},
                 {"elastic", 0}},  // a worker that joins would be one
                &table.spec);
  Said fitted = sample;
  std::visit(
      [&]<class M>(M& message) {
        if constexpr (!std::is_same_v<M, std::monostate>) proto::FieldsOf(fitter, message);
      },
      static_cast<proto::MessageVariant&>(fitted.message));
  std::vector<runtime::Buffer> payload;
  for (const std::string& frame : fitted.payload) payload.push_back(runtime::Buffer::CopyOf(frame));
  const bool fits = proto::Decode(proto::Encode(fitted.message), payload).ok();
  return fits ? fitted : sample;
}

void EveryMessage::AddRequests(const proto::TableReply& table, std::uint64_t incarnation,
                               std::vector<Said>* all) const {
  const auto shards = static_cast<std::uint32_t>(cluster_->map.owners.size());
  proto::Request request;
  request.id = {.incarnation = incarnation, .sequence = 1 + all->size(), .worker = 0};
  request.epoch = cluster_->map.epoch;
  request.table = table.table;
  request.kind = table.spec.kind;
  request.op = proto::Op::kPull;
  request.dtype = table.spec.dtype;
  request.timeout_ms = 1000;
  if (table.spec.kind == TableKind::kDense) {
    const std::uint64_t blocks = proto::NumBlocks(table.spec, cluster_->block_bytes);
    for (request.block = 0; request.block < std::min(blocks, kBlocksMax); ++request.block) {
      request.id.shard = proto::ShardOfBlock(table.table, request.block, shards);
      request.elements = proto::ElementsInBlock(table.spec, cluster_->block_bytes, request.block);
      all->push_back({request, {}});
    }
    request.block = 0;
    request.id.shard = proto::ShardOfBlock(table.table, 0, shards);
    request.elements = proto::ElementsInBlock(table.spec, cluster_->block_bytes, 0);
    request.op = proto::Op::kPush;
    all->push_back({request, {std::string(request.elements * SizeOf(table.spec.dtype), '\0')}});
    return;
  }
  std::map<std::uint32_t, std::vector<std::uint64_t>> keys;  // by shard
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    keys[proto::ShardOfKey(key, shards)].push_back(key);
  }
  for (const auto& [shard, of_shard] : keys) {
    request.id.shard = shard;
    request.keys = of_shard.size();
    all->push_back({request, {TextOf(proto::FrameOf(of_shard))}});
  }
}

std::vector<EveryMessage::Said> EveryMessage::All(std::uint64_t incarnation) const {
  std::vector<Said> all;
  for (const proto::Sample& sample : proto::AllSamples()) {
    Said said{.message = sample.message, .payload = {}};
    for (const runtime::Buffer& frame : sample.payload) said.payload.push_back(TextOf(frame));
    all.push_back(Fitted(std::move(said), incarnation));
  }
  for (const proto::TableReply& table : cluster_->tables) AddRequests(table, incarnation, &all);
  return all;
}

void EveryMessage::LeaveOutRefused(const std::string& address) {
  refused_.clear();
  const std::size_t count = All(0).size();
  for (std::size_t begin = 0; begin < count; begin += kAskedAtOnce) {
    const std::vector<bool> more = AskAbout(address, begin, std::min(count, begin + kAskedAtOnce));
    refused_.insert(refused_.end(), more.begin(), more.end());
  }
}

// Each message is said over its own connection, and a question after it that may be asked.
std::vector<bool> EveryMessage::AskAbout(const std::string& address, std::size_t begin,
                                         std::size_t end) const {
  std::vector<std::unique_ptr<HostilePeer>> peers;
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t incarnation = NewIncarnation();
    proto::AnyMessage question = proto::StatusRequest{kMark};
    if (as_.role == Role::kReader && at_ == Role::kServer) {
      proto::Request pull;
      pull.id = {.incarnation = incarnation, .sequence = kMark};
      pull.epoch = cluster_->map.epoch;
      pull.table = cluster_->tables.front().table;
      pull.op = proto::Op::kPull;
      pull.elements = 1;
      question = pull;
    }
    peers.push_back(std::make_unique<HostilePeer>(address, as_, incarnation));
    peers.back()->Say(Joins() + All(incarnation)[i].Bytes() + Framed(question));
  }
  std::vector<bool> refused(peers.size(), true);
  std::set<std::size_t> unanswered;
  for (std::size_t i = 0; i < peers.size(); ++i) unanswered.insert(i);
  const absl::Time deadline = absl::Now() + kAskPatience;
  while (!unanswered.empty() && absl::Now() < deadline) {
    std::erase_if(unanswered, [&](std::size_t i) {
      const bool there = peers[i]->Read();
      bool answered = false;
      while (const auto message = peers[i]->Take()) answered = answered || IsMark(*message);
      refused[i] = !answered;
      return !there || answered;
    });
    ::poll(nullptr, 0, 5);
  }
  return refused;
}

std::string EveryMessage::Joins() const {
  if (!as_.joins || at_ != Role::kScheduler) return "";
  proto::Join join;
  join.role = as_.role;
  return Framed(join);
}

// A reader that leaves joins again.
std::string EveryMessage::Bytes(std::uint64_t incarnation) const {
  std::string bytes = Joins();
  const std::vector<Said> all = All(incarnation);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < refused_.size() && refused_[i]) continue;
    bytes += all[i].Bytes();
    if (std::holds_alternative<proto::Leave>(all[i].message)) bytes += Joins();
  }
  return bytes;
}

std::size_t EveryMessage::types() const {
  std::set<absl::string_view> names;
  const std::vector<Said> all = All(0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= refused_.size() || !refused_[i]) names.insert(proto::NameOf(all[i].message));
  }
  return names.size();
}

}  // namespace leeway::storm
