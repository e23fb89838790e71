#include "tests/simulation/coded_checker.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "leeway/config.h"

namespace leeway::simulation {
namespace {

constexpr absl::string_view kOneClock = "all workers switch at one clock";
constexpr absl::string_view kTableAtOneClock = "a table changes at one clock";

// After this time a server has the newest map, or is taken for dead.
constexpr absl::Duration kServersKnowWithin = absl::Seconds(10);

bool IsGradient(const SimTable& table) {
  return table.spec.updater.name == compress::kGradientUpdater;
}

}  // namespace

CodedChecker::CodedChecker(const std::vector<SimTable>* tables, const History* history,
                           Checker* checker)
    : tables_(tables),
      checker_(checker),
      pushes_(tables, history),
      codecs_(history),
      ledger_(history),
      settings_(history) {
  checker_->Add(NewVersionsRead(&ledger_));
}

// A block begins with the version that its servers have a record of, or with its values if that may
// be of an earlier time.
void CodedChecker::BeginWith(const SimTable& table, std::uint32_t place, const SavedPlace& saved) {
  if (!IsGradient(table)) pushes_.BeginWith(table, place, saved.values);
  if (table.one_writer) {
    states_.BeginWith(table, place, saved.updates, saved.values,
                      IsGradient(table) ? saved.feedback : std::vector<float>());
  }
  if (!table.versions()) return;
  ledger_.BeginWithItself(table, place, saved.updates + 1, saved.values);
  if (saved.codec_changed) {
    ledger_.BeginWith(table, place, saved.updates + 1, saved.values);
  } else if (saved.version != 0 && !saved.feedback.empty()) {
    ledger_.BeginWith(table, place, saved.version, saved.feedback);
  }
}

void CodedChecker::Hear(const van::Overheard& heard, absl::Time now) {
  const bool worker = absl::StartsWith(heard.from, Name(Role::kWorker));
  const bool server = absl::StartsWith(heard.from, Name(Role::kServer));
  const bool scheduler = absl::StartsWith(heard.from, Name(Role::kScheduler));
  const auto& payload = heard.raw.payload;
  if (const auto* const map = std::get_if<proto::ClusterMap>(&heard.message);
      scheduler && map != nullptr) {
    std::string wrong = codecs_.OnMap(*map, now);
    if (!wrong.empty()) checker_->Fail(kOneClock, std::move(wrong));
    wrong = settings_.OnMap(*map);
    if (!wrong.empty()) checker_->Fail(kTableAtOneClock, std::move(wrong));
  } else if (const auto* const entry = std::get_if<proto::Replicate>(&heard.message);
             server && entry != nullptr) {
    std::string wrong = settings_.OnEntry(*entry);
    if (!wrong.empty()) checker_->Fail(kTableAtOneClock, std::move(wrong));
  } else if (const auto* const reply = std::get_if<proto::Reply>(&heard.message);
             server && reply != nullptr) {
    HearReply(*reply, {payload.data(), payload.size()});
  } else if (const auto* const request = std::get_if<proto::Request>(&heard.message);
             worker && request != nullptr) {
    HearRequest(*request);
    if (proto::HasPush(request->op)) {
      HearPush({.request = *request, .payload = payload}, now);
    }
  } else if (const auto* const batch = std::get_if<proto::PushBatch>(&heard.message);
             worker && batch != nullptr) {
    ps::ForEachPush(0, *batch, payload[0], [&](const ps::Inbound& push) { HearPush(push, now); });
  }
}

void CodedChecker::HearRequest(const proto::Request& request) {
  const SimTable* const table = pushes_.Find(request.table);
  if (table == nullptr || !proto::HasPull(request.op)) return;
  if (table->versions()) ledger_.OnAsked(*table, request);
  if (!IsGradient(*table) || !table->switches()) return;
  const proto::RequestId& id = request.id;
  gradients_asked_[{id.worker, id.incarnation, id.shard, id.sequence}] = {
      table, static_cast<std::uint32_t>(request.block)};
}

void CodedChecker::HearReply(const proto::Reply& reply, std::span<const runtime::Buffer> payload) {
  std::string wrong = ledger_.OnAnswered(reply, payload);
  if (!wrong.empty()) checker_->Fail("a version is the same for all", std::move(wrong));
  const proto::RequestId& id = reply.id;
  const auto asked = gradients_asked_.find({id.worker, id.incarnation, id.shard, id.sequence});
  if (asked == gradients_asked_.end() || !reply.result.ok() || payload.size() != 1) return;
  const auto& [table, block] = asked->second;
  std::vector<float> values(table->ElementsOf(block));
  const compress::TableCodec* const codec =
      reply.parts.empty() ? nullptr : table->codecs.Find(reply.parts[0].codec);
  if (codec != nullptr) {
    const CodecShape shape = compress::BlockShape(table->spec, *codec, values.size());
    if (!codec->codec->Decode(payload[0].bytes(), shape, values.data()).ok()) return;
  } else if (payload[0].size() == values.size() * sizeof(float)) {
    std::memcpy(values.data(), payload[0].data(), payload[0].size());
  }
  states_.OnAnswered(*table, block, values);
}

void CodedChecker::HearPush(const ps::Inbound& push, absl::Time now) {
  const SimTable* const table = pushes_.Find(push.request.table);
  if (table == nullptr) return;
  CodedPushes::Heard heard = pushes_.Hear(*table, push);
  if (!heard.wrong.empty()) {
    return checker_->Fail("what is sent again is the same", std::move(heard.wrong));
  }
  if (!heard.fresh) return;
  std::string wrong = codecs_.OnPush(push.request.table, {.rank = push.request.id.worker,
                                                          .known_as = push.request.id.incarnation,
                                                          .clock = push.request.clock,
                                                          .codec = push.request.codec,
                                                          .plain_under = heard.plain_under});
  if (!wrong.empty()) checker_->Fail(kOneClock, std::move(wrong));
  if (!table->one_writer) return;
  const std::vector<std::uint32_t> choices =
      codecs_.ChoicesAt(push.request.table, push.request.clock, now - kServersKnowWithin);
  for (const CodedPushes::Piece& piece : heard.pieces) {
    checker_->OnState(
        *table, piece.place,
        states_.Next(*table, push.request.table, piece.place, piece.values, heard.rate, choices));
  }
}

void CodedChecker::OnLastRead(const Read& read) {
  if (!read.table->versions()) return;
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    const std::span<const float> values = read.FloatsOf(i);
    last_[{read.table->index, read.places[i], read.reader}] =
        std::vector<float>(values.begin(), values.end());
  }
}

void CodedChecker::JudgeShard(ps::Shard* head, std::uint64_t clock) {
  if (std::string wrong = pushes_.JudgeShard(head); !wrong.empty()) {
    checker_->Fail("what was pushed adds up", std::move(wrong));
  }
  for (const auto& [id, store] : head->stores()) {
    const SimTable* const table = pushes_.Find(id);
    if (table == nullptr || !table->versions()) continue;
    JudgeVersions(*table, table->codecs.choices[codecs_.ChoiceAt(id, clock)], store.get());
  }
}

// Every worker that has read the newest version holds the server's record of its values; with a
// codec without versions, the block itself.
void CodedChecker::JudgeVersions(const SimTable& table, const compress::TableCodec& codec,
                                 ps::ShardStore* store) {
  for (const ps::FrozenPiece& piece : store->Freeze().pieces) {
    const auto block = static_cast<std::uint32_t>(piece.block);
    const std::uint64_t newest = piece.steps.as<std::uint64_t>()[0] + 1;
    const std::string where = absl::StrCat("block ", block, " of '", table.spec.name, "' (",
                                           absl::StrJoin(table.codecs.texts, "; "), ", ",
                                           table.spec.consistency.ToString(), ")");
    if (codec.versions && piece.version != newest) {
      checker_->Fail("all hold the same at the end",
                     absl::StrCat(where, " is at version ", piece.version, " of ", newest));
      continue;
    }
    const std::size_t slot = (piece.state_slots - 1) * piece.elements * sizeof(float);
    const std::byte* const held = codec.versions ? piece.state.data() + slot : piece.values.data();
    for (const auto& [key, values] : last_) {
      if (std::get<0>(key) != table.index || std::get<1>(key) != block) continue;
      if (std::memcmp(held, values.data(), values.size() * sizeof(float)) == 0) continue;
      checker_->Fail("all hold the same at the end",
                     absl::StrCat("worker ", std::get<2>(key), " holds ", values[0], ", … of ",
                                  where, ", but the server believes something else"));
    }
  }
}

void CodedChecker::JudgeWorker(std::uint32_t rank,
                               const std::vector<std::shared_ptr<const worker::TableInfo>>& infos) {
  for (const SimTable& table : *tables_) {
    if (!table.coded || infos[table.index]->coding == nullptr) continue;
    std::string wrong = pushes_.JudgeWorker(table, rank, *infos[table.index]->coding);
    if (!wrong.empty()) checker_->Fail("what was pushed adds up", std::move(wrong));
  }
}

}  // namespace leeway::simulation
