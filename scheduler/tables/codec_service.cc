#include "scheduler/tables/codec_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/table_codec.h"
#include "proto/tables/text.h"
#include "runtime/log/log.h"

namespace leeway::scheduler {
namespace {

constexpr char kAskedFor[] = "it was asked for";

}  // namespace

CodecService::CodecService(MembershipTable* members, const TableCatalogue* catalogue,
                           const ClusterLife* life, CodecSwitches::Changed changed)
    : members_(members),
      catalogue_(catalogue),
      life_(life),
      switches_(/*told_max=*/1, [members] { return members->AliveIds(Role::kWorker); },
                std::move(changed)) {}

void CodecService::Command(const AdminService::Arguments& arguments,
                           const AdminService::Answer& answer) {
  if (arguments.size() != 2) {
    return answer(absl::InvalidArgumentError("codec takes a table and a codec"));
  }
  if (const absl::Status ready = life_->Ready(); !ready.ok()) return answer(ready);
  const std::string& name = arguments[0];
  const std::string& codec = arguments[1];
  const std::optional<TableCatalogue::Entry> table = catalogue_->Installed(name);
  if (!table.has_value()) {
    return answer(
        absl::NotFoundError(absl::StrCat("there is no table ", proto::QuotedBriefly(name))));
  }
  const bool automatic = table->spec.codec == compress::kAutomaticCodec;
  if (automatic && codec == compress::kAutomaticCodec) {
    pin_changes_ += pinned_.erase(table->id);
    const nlohmann::json json = {
        {"table", name}, {"codec", codec}, {"clock", switches_.CurrentOf(table->id).since}};
    return answer(json.dump());
  }
  const std::vector<std::string> texts = compress::CodecTextsOf(table->spec);
  const auto found = std::find(texts.begin(), texts.end(), codec);
  if (found == texts.end()) {
    return answer(absl::InvalidArgumentError(
        absl::StrCat("table '", name, "' may have codec ", absl::StrJoin(texts, "; "), ", but not ",
                     proto::QuotedBriefly(codec), ": name it in TableSpec::codecs when the ",
                     "table is created")));
  }
  const auto choice = static_cast<std::uint32_t>(found - texts.begin());
  if (automatic && pinned_.insert(table->id).second) ++pin_changes_;
  reasons_[table->id] = kAskedFor;
  switches_.Switch(table->id, choice, [=](const absl::StatusOr<std::uint64_t>& clock) {
    if (!clock.ok()) return answer(clock.status());
    runtime::LogInfo("table '", name, "' has codec ", codec, " from clock ", *clock, " on");
    const nlohmann::json json = {{"table", name}, {"codec", codec}, {"clock", *clock}};
    answer(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void CodecService::OnReport(std::uint32_t worker, const proto::CodecReport& report) {
  switches_.OnClock(report.clock);
  const auto tables = catalogue_->tables();
  if (std::ranges::none_of(tables, [&](const auto& one) { return one.id == report.table; })) return;
  chooser_.OnReport(worker, report);
}

void CodecService::Choose() {
  for (const TableCatalogue::Entry& table : catalogue_->tables()) {
    const bool automatic = table.spec.codec == compress::kAutomaticCodec;
    if (!table.installed || !automatic || pinned_.contains(table.id)) continue;
    const CodecSwitches::Current current = switches_.CurrentOf(table.id);
    if (current.being_changed) continue;
    const std::vector<std::string> texts = compress::CodecTextsOf(table.spec);
    const auto name = [this](std::uint32_t id) {
      const Node* const node = members_->Find(id);
      return node == nullptr ? absl::StrCat("node ", id) : node->FullName();
    };
    const std::optional<CodecChooser::Choice> better =
        chooser_.Look(table.id, current.choice, texts, name);
    if (!better.has_value()) continue;
    reasons_[table.id] = better->reason;
    switches_.Switch(table.id, better->choice,
                     [table = table.spec.name, codec = texts[better->choice],
                      reason = better->reason](const absl::StatusOr<std::uint64_t>& clock) {
                       if (!clock.ok()) return;
                       runtime::LogInfo("table '", table, "' has codec ", codec, " from clock ",
                                        *clock, " on: ", reason);
                     });
  }
}

void CodecService::WorkerGone(std::uint32_t worker) {
  chooser_.Forget(worker);
  switches_.WorkersChanged();
}

void CodecService::RestorePinned(std::set<std::uint32_t> pinned) {
  pinned_ = std::move(pinned);
  for (const std::uint32_t table : pinned_) reasons_[table] = kAskedFor;
}

}  // namespace leeway::scheduler
