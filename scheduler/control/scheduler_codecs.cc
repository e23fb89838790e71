#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/table_codec.h"
#include "proto/tables/text.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler_impl.h"
#include "scheduler/members/known_codecs.h"

namespace leeway::scheduler {

absl::Status Scheduler::Impl::CheckCodecs(const TableSpec& spec) const {
  return CheckCodecsAreKnown(spec, members_.Alive());
}

// codec TABLE CODEC. Answered when it is decided from which clock on the codec holds.
void Scheduler::Impl::CodecCommand(const AdminService::Ask& ask,
                                   const AdminService::Arguments& arguments) {
  if (arguments.size() != 2) {
    return admin_service_.Answer(ask,
                                 absl::InvalidArgumentError("codec takes a table and a codec"));
  }
  if (const absl::Status ready = Ready(); !ready.ok()) return admin_service_.Answer(ask, ready);
  const std::string& name = arguments[0];
  const std::string& codec = arguments[1];
  const std::optional<TableCatalogue::Entry> table = catalogue_.Installed(name);
  if (!table.has_value()) {
    return admin_service_.Answer(
        ask, absl::NotFoundError(absl::StrCat("there is no table ", proto::QuotedBriefly(name))));
  }
  const bool automatic = table->spec.codec == compress::kAutomaticCodec;
  if (automatic && codec == compress::kAutomaticCodec) {
    pin_changes_ += pinned_.erase(table->id);
    const nlohmann::json json = {
        {"table", name}, {"codec", codec}, {"clock", switches_.CurrentOf(table->id).since}};
    return admin_service_.Answer(ask, json.dump());
  }
  const std::vector<std::string> texts = compress::CodecTextsOf(table->spec);
  const auto found = std::find(texts.begin(), texts.end(), codec);
  if (found == texts.end()) {
    return admin_service_.Answer(
        ask, absl::InvalidArgumentError(
                 absl::StrCat("table '", name, "' may have codec ", absl::StrJoin(texts, "; "),
                              ", but not ", proto::QuotedBriefly(codec),
                              ": name it in TableSpec::codecs when the ", "table is created")));
  }
  const auto choice = static_cast<std::uint32_t>(found - texts.begin());
  if (automatic && pinned_.insert(table->id).second) ++pin_changes_;
  codec_reasons_[table->id] = kAskedFor;
  switches_.Switch(table->id, choice, [=, this](const absl::StatusOr<std::uint64_t>& clock) {
    if (!clock.ok()) return admin_service_.Answer(ask, clock.status());
    runtime::LogInfo("table '", name, "' has codec ", codec, " from clock ", *clock, " on");
    const nlohmann::json json = {{"table", name}, {"codec", codec}, {"clock", *clock}};
    admin_service_.Answer(ask, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void Scheduler::Impl::On(const Sender& sender, const proto::CodecReport& report) {
  if (!IsMember(sender, Role::kWorker)) return;
  switches_.OnClock(report.clock);
  chooser_.OnReport(sender.node->id, report);
}

void Scheduler::Impl::ChooseCodecs() {
  for (const TableCatalogue::Entry& table : catalogue_.tables()) {
    const bool automatic = table.spec.codec == compress::kAutomaticCodec;
    if (!table.installed || !automatic || pinned_.contains(table.id)) continue;
    const CodecSwitches::Current current = switches_.CurrentOf(table.id);
    if (current.being_changed) continue;
    const std::vector<std::string> texts = compress::CodecTextsOf(table.spec);
    const auto name = [this](std::uint32_t id) {
      const Node* const node = members_.Find(id);
      return node == nullptr ? absl::StrCat("node ", id) : node->FullName();
    };
    const std::optional<CodecChooser::Choice> better =
        chooser_.Look(table.id, current.choice, texts, name);
    if (!better.has_value()) continue;
    codec_reasons_[table.id] = better->reason;
    switches_.Switch(table.id, better->choice,
                     [table = table.spec.name, codec = texts[better->choice],
                      reason = better->reason](const absl::StatusOr<std::uint64_t>& clock) {
                       if (!clock.ok()) return;
                       runtime::LogInfo("table '", table, "' has codec ", codec, " from clock ",
                                        *clock, " on: ", reason);
                     });
  }
}

}  // namespace leeway::scheduler
