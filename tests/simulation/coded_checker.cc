#include "tests/simulation/coded_checker.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "proto/codec.h"

namespace leeway::simulation {

CodedChecker::CodedChecker(const std::vector<SimTable>* tables, const History* history,
                           Checker* checker)
    : tables_(tables), checker_(checker), pushes_(tables, history), ledger_(history) {
  checker_->Add(NewVersionsRead(&ledger_));
}

void CodedChecker::Hear(const std::string& from_host, const van::Message& message) {
  const bool worker = absl::StartsWith(from_host, Name(Role::kWorker));
  if (!worker && !absl::StartsWith(from_host, Name(Role::kServer))) return;
  ps::Payload payload(message.payload.begin(), message.payload.end());
  const auto decoded = proto::Decode(message.header, {payload.data(), payload.size()});
  if (!decoded.ok()) return;
  if (const auto* const reply = std::get_if<proto::Reply>(&*decoded); !worker && reply != nullptr) {
    std::string wrong = ledger_.OnAnswered(*reply, {payload.data(), payload.size()});
    if (!wrong.empty()) checker_->Fail("a version is the same for all", std::move(wrong));
  } else if (const auto* const request = std::get_if<proto::Request>(&*decoded);
             worker && request != nullptr) {
    const SimTable* const table = pushes_.Find(request->table);
    if (table == nullptr) return;
    if (proto::HasPull(request->op) && table->versions()) ledger_.OnAsked(*table, *request);
    if (proto::HasPush(request->op)) {
      HearPush({.request = *request, .payload = std::move(payload)});
    }
  } else if (const auto* const batch = std::get_if<proto::PushBatch>(&*decoded);
             worker && batch != nullptr) {
    ps::ForEachPush(0, *batch, payload[0], [this](const ps::Inbound& push) { HearPush(push); });
  }
}

void CodedChecker::HearPush(const ps::Inbound& push) {
  const SimTable* const table = pushes_.Find(push.request.table);
  if (table == nullptr) return;
  CodedPushes::Heard heard = pushes_.Hear(*table, push);
  if (!heard.wrong.empty()) {
    return checker_->Fail("what is sent again is the same", std::move(heard.wrong));
  }
  if (!table->has_states()) return;
  for (const CodedPushes::Piece& piece : heard.pieces) {
    checker_->OnState(
        *table, piece.place,
        states_.Next(*table, push.request.table, piece.place, piece.values, heard.rate));
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

void CodedChecker::JudgeShard(ps::Shard* head) {
  if (std::string wrong = pushes_.JudgeShard(head); !wrong.empty()) {
    checker_->Fail("what was pushed adds up", std::move(wrong));
  }
  for (const auto& [id, store] : head->stores()) {
    const SimTable* const table = pushes_.Find(id);
    if (table != nullptr && table->versions()) JudgeVersions(*table, store.get());
  }
}

// Everyone who has read the newest version holds what the server believes.
void CodedChecker::JudgeVersions(const SimTable& table, ps::ShardStore* store) {
  for (const ps::FrozenPiece& piece : store->Freeze().pieces) {
    const auto block = static_cast<std::uint32_t>(piece.block);
    const std::uint64_t newest = piece.steps.as<std::uint64_t>()[0] + 1;
    const std::string where =
        absl::StrCat("block ", block, " of '", table.spec.name, "' (", table.spec.codec, ", ",
                     table.spec.consistency.ToString(), ")");
    if (piece.version != newest) {
      checker_->Fail("all hold the same at the end",
                     absl::StrCat(where, " is at version ", piece.version, " of ", newest));
      continue;
    }
    const std::size_t slot = (piece.state_slots - 1) * piece.elements * sizeof(float);
    for (const auto& [key, values] : last_) {
      if (std::get<0>(key) != table.index || std::get<1>(key) != block) continue;
      if (std::memcmp(piece.state.data() + slot, values.data(), values.size() * sizeof(float)) ==
          0) {
        continue;
      }
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
