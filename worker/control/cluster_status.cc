#include "worker/control/cluster_status.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway::worker {
namespace {

using Json = nlohmann::json;

Json Parsed(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// By rank, ", last heard 12.0s ago from 10.0.0.7".
std::map<std::uint64_t, std::string> HeardOf(const Json& status) {
  std::map<std::uint64_t, std::string> heard;
  const auto workers = status.find("workers");
  if (workers == status.end() || !workers->is_array()) return heard;
  for (const Json& worker : *workers) {
    if (!worker.is_object()) continue;
    const auto rank = worker.find("rank");
    const auto silent_ms = worker.find("last_heard_ms");
    const auto address = worker.find("address");
    if (rank == worker.end() || !rank->is_number_unsigned() || silent_ms == worker.end() ||
        !silent_ms->is_number_integer()) {
      continue;
    }
    std::string text = absl::StrFormat(", last heard %.1fs ago",
                                       static_cast<double>(silent_ms->get<std::int64_t>()) / 1000);
    if (address != worker.end() && address->is_string()) {
      absl::StrAppend(&text, " from ", address->get<std::string>());
    }
    heard[rank->get<std::uint64_t>()] = std::move(text);
  }
  return heard;
}

std::size_t DigitsAt(absl::string_view text, std::size_t at) {
  std::size_t digits = 0;
  while (at + digits < text.size() && absl::ascii_isdigit(text[at + digits])) ++digits;
  return digits;
}

// If text like "worker 3 is at clock 41" or "worker 4 at clock 40" starts at `at`: where it ends,
// and the worker's rank. Otherwise npos.
std::size_t EndOfName(absl::string_view text, std::size_t at, std::uint64_t* rank) {
  constexpr absl::string_view kWorker = "worker ";
  if (!absl::StartsWith(text.substr(at), kWorker)) return absl::string_view::npos;
  at += kWorker.size();
  const std::size_t digits = DigitsAt(text, at);
  if (!absl::SimpleAtoi(text.substr(at, digits), rank)) return absl::string_view::npos;
  at += digits;
  for (const absl::string_view between : {" is at clock ", " at clock "}) {
    if (!absl::StartsWith(text.substr(at), between)) continue;
    at += between.size();
    return at + DigitsAt(text, at);
  }
  return absl::string_view::npos;
}

}  // namespace

std::string WithLastHeard(absl::string_view waiting, absl::string_view status_json) {
  const Json status = Parsed(status_json);
  if (!status.is_object()) return std::string(waiting);
  const std::map<std::uint64_t, std::string> heard = HeardOf(status);
  const std::size_t names_end = waiting.find("; waiting for clock ");
  if (names_end == absl::string_view::npos) return std::string(waiting);
  std::string text;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < names_end; ++at) {
    std::uint64_t rank = 0;
    const std::size_t end = EndOfName(waiting, at, &rank);
    if (end == absl::string_view::npos) continue;
    const auto found = heard.find(rank);
    if (found == heard.end()) continue;
    absl::StrAppend(&text, waiting.substr(copied, end - copied), found->second);
    copied = end;
  }
  absl::StrAppend(&text, waiting.substr(copied));
  return text;
}

absl::StatusOr<std::uint64_t> ClockOfSwitch(absl::string_view json) {
  const Json answer = Parsed(json);
  if (answer.is_object()) {
    const auto clock = answer.find("clock");
    if (clock != answer.end() && clock->is_number_unsigned()) return clock->get<std::uint64_t>();
  }
  return absl::InternalError(
      "the table gets the codec, but the scheduler's answer does not say from which clock on");
}

absl::StatusOr<std::uint64_t> VersionOfModel(absl::string_view json) {
  const Json answer = Parsed(json);
  if (answer.is_object()) {
    const auto version = answer.find("version");
    if (version != answer.end() && version->is_number_unsigned()) {
      return version->get<std::uint64_t>();
    }
  }
  return absl::InternalError(
      "a version is published, but the scheduler's answer does not say which");
}

absl::StatusOr<std::vector<std::string>> TablesOfModel(absl::string_view json) {
  const Json answer = Parsed(json);
  std::vector<std::string> names;
  if (answer.is_object()) {
    const auto tables = answer.find("tables");
    if (tables != answer.end() && tables->is_array()) {
      for (const Json& name : *tables) {
        if (name.is_string()) names.push_back(name.get<std::string>());
      }
    }
  }
  if (!names.empty()) return names;
  return absl::InternalError("the scheduler's answer does not say which tables the model has");
}

absl::StatusOr<std::string> CheckpointPath(absl::string_view json) {
  const Json answer = Parsed(json);
  if (answer.is_object()) {
    const auto path = answer.find("path");
    if (path != answer.end() && path->is_string()) return path->get<std::string>();
  }
  return absl::InternalError(
      "the checkpoint was saved, but the scheduler's answer does not say where");
}

}  // namespace leeway::worker
