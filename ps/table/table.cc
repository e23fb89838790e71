#include "ps/table/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/table_codec.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

absl::string_view NameOf(TableKind kind) {
  switch (kind) {
    case TableKind::kDense:
      return "dense";
    case TableKind::kSparse:
      return "sparse";
    case TableKind::kRagged:
      return "ragged";
  }
  return "unknown";
}

}  // namespace

// A table is installed only where its codecs are known (MakeUpdater).
compress::TableCodecs Table::CodecsOf(const TableSpec& spec) {
  absl::StatusOr<compress::TableCodecs> codecs = compress::TableCodecsOf(spec);
  if (codecs.ok()) return *std::move(codecs);
  return {.choices = {compress::TableCodec()}, .texts = {spec.codec}};
}

absl::Status CheckConsistency(const TableSpec& spec, const Updater& updater) {
  const Consistency& consistency = spec.consistency;
  if (!consistency.collects() && !consistency.is_weighted() && !consistency.is_compensated()) {
    return absl::OkStatus();
  }
  const auto with = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("table '", spec.name, "': consistency ",
                                                   consistency.ToString(), " and ", what...));
  };
  if (updater.combine() == Updater::Combine::kLast) {
    return with("updater '", spec.updater.name,
                "', whose last push wins, do not go together: pushes are added up or weighted");
  }
  const absl::StatusOr<compress::TableCodecs> codecs = compress::TableCodecsOf(spec);
  if (codecs.ok() && codecs->AnyHas(&compress::TableCodec::versions)) {
    return with("codec '", spec.codec,
                "' do not go together: its replies are differences between versions, which are "
                "made by clocks (error_feedback off or worker has none)");
  }
  return absl::OkStatus();
}

std::unique_ptr<PreparedTableSettings> Table::NewSettings(std::uint32_t number,
                                                          const TableSpec& spec,
                                                          std::unique_ptr<Updater> updater) {
  return std::make_unique<PreparedTableSettings>(
      PreparedTableSettings{.number = number,
                            .spec = spec,
                            .updater = std::move(updater),
                            .policy = Policy(spec.consistency)});
}

const PreparedTableSettings* Table::FindSettings(std::uint32_t number) const {
  // Late ones are asked for most.
  const auto found = std::find_if(settings_.rbegin(), settings_.rend(),
                                  [&](const auto& one) { return one->number == number; });
  return found == settings_.rend() ? nullptr : found->get();
}

const PreparedTableSettings& Table::SettingsAt(std::uint64_t clock) const {
  const proto::TableSettings* const settings = settings_schedule_.At(clock);
  return *(settings == nullptr ? settings_.front().get() : FindSettings(settings->number));
}

const PreparedTableSettings& Table::SettingsFor(std::uint64_t clock) const {
  return SettingsAt(clock);
}

bool Table::is_ever_bounded() const {
  return std::any_of(settings_.begin(), settings_.end(), [](const auto& settings) {
    return settings->policy.consistency().is_bounded();
  });
}

absl::Status Table::Follow(std::span<const proto::TableSettings> all) {
  for (const proto::TableSettings& settings : all) {
    if (FindSettings(settings.number) != nullptr) continue;
    const TableSpec other = proto::WithTableSettings(spec(), settings);
    LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<Updater> updater, MakeUpdater(other));
    LEEWAY_RETURN_IF_ERROR(CouldHave(other, *updater));
    settings_.push_back(NewSettings(settings.number, other, std::move(updater)));
  }
  settings_schedule_.Follow(all);
  NoteConsistency();
  return absl::OkStatus();
}

void Table::NoteConsistency() {
  const Consistency& consistency = newest_settings().policy.consistency();
  closes_by_count_ = consistency.rule == Consistency::Rule::kBackup;
  goes_by_slowest_ = consistency.rule == Consistency::Rule::kClocks || consistency.is_unbounded();
  is_weighted_ = consistency.is_weighted();
  is_compensated_ = consistency.is_compensated();
}

absl::Status Table::CouldHave(const TableSpec& other, const Updater& its) const {
  LEEWAY_RETURN_IF_ERROR(CheckConsistency(other, its));
  if (its.combine() == updater()->combine() && its.state_slots() == updater()->state_slots()) {
    for (int slot = 0; slot < its.state_slots(); ++slot) {
      if (its.initial_state(slot) == updater()->initial_state(slot)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "with these hyper-parameters the state of updater '", spec().updater.name, "' begins at ",
          its.initial_state(slot), ", and that of table '", spec().name, "' began at ",
          updater()->initial_state(slot), ": that shapes the data"));
    }
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("with these hyper-parameters updater '", spec().updater.name, "' keeps ",
                   its.state_slots(), " values of state for each element, and table '", spec().name,
                   "' has ", updater()->state_slots(), ": that shapes the data"));
}

// The scheduler knows how many codecs the table has; nothing that it says may end a server.
void Table::Follow(const proto::CodecSwitch& change) {
  const std::size_t choices = codecs_.choices.size();
  if (change.choice < choices && change.before < choices) schedule_.Follow(change);
}

absl::Status Table::Fits(const proto::Request& request, std::uint64_t message_bytes_max) const {
  if (request.kind != spec().kind) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec().name, " is ",
                                                   NameOf(spec().kind), "; the request says ",
                                                   NameOf(request.kind)));
  }
  if (request.dtype != spec().dtype) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec().name, " holds ",
                                                   Name(spec().dtype), "; the request says ",
                                                   Name(request.dtype)));
  }
  if (request.codec != 0 && codecs_.Find(request.codec) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("table ", spec().name, " has codec ",
                                                   absl::StrJoin(codecs_.texts, "; "),
                                                   "; the push is encoded by another one"));
  }
  if (HasPull(request.op) && spec().kind == TableKind::kSparse) {
    // Keys and widths are below 2^26 and 2^24 (proto/messages/limits.h), so this does not overflow.
    const std::uint64_t bytes = request.keys * spec().row_width * SizeOf(spec().dtype);
    if (bytes > message_bytes_max) {
      return absl::InvalidArgumentError(
          absl::StrCat("a pull of ", request.keys, " keys of table ", spec().name, " is ", bytes,
                       " bytes, more than one message may have (", message_bytes_max,
                       "): pull fewer keys at once or raise LEEWAY_MESSAGE_BYTES_MAX"));
    }
  }
  return absl::OkStatus();
}

absl::Status Tables::Install(std::uint32_t id, const TableSpec& spec,
                             std::unique_ptr<Updater> updater) {
  if (const Table* other = Find(id); other != nullptr) {
    if (other->spec() == spec) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(
        "table ", id, " is installed as ", other->spec().ToString(), ", not as ", spec.ToString()));
  }
  const Table& table = tables_.try_emplace(id, id, spec, std::move(updater)).first->second;
  any_closes_by_count_ = any_closes_by_count_ || table.closes_by_count();
  return absl::OkStatus();
}

void Tables::Forget(std::uint32_t id) {
  const auto it = tables_.find(id);
  if (it != tables_.end() && !it->second.asked_for()) tables_.erase(it);
}

void Tables::Follow(const std::vector<proto::CodecSwitch>& changes) {
  for (const proto::CodecSwitch& change : changes) {
    if (Table* const table = Find(change.table); table != nullptr) table->Follow(change);
  }
}

absl::Status Tables::Follow(const std::vector<proto::TableSettings>& settings) {
  absl::Status all;
  for (auto& [id, table] : tables_) {
    const PreparedTableSettings* const before = &table.newest_settings();
    all.Update(table.Follow(proto::TableSettingsOf(settings, id)));
    settings_changes_ += &table.newest_settings() != before;
    any_closes_by_count_ = any_closes_by_count_ || table.closes_by_count();
  }
  return all;
}

Table* Tables::Find(std::uint32_t id) {
  auto it = tables_.find(id);
  return it == tables_.end() ? nullptr : &it->second;
}

}  // namespace leeway::ps
