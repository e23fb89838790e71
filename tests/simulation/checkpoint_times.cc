#include "tests/simulation/checkpoint_times.h"

#include <algorithm>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace leeway::simulation {

void CheckpointTimes::Hear(const van::Overheard& heard, absl::Time now) {
  if (const auto* const cut = std::get_if<proto::CheckpointCut>(&heard.message)) {
    attempts_.try_emplace(cut->checkpoint, Attempt{cut->directory, cut->clock});
  } else if (const auto* const written = std::get_if<proto::CheckpointWritten>(&heard.message)) {
    const auto attempt = attempts_.find(written->checkpoint);
    if (attempt == attempts_.end() || !written->result.ok()) return;
    if (attempt->second.servers.insert(heard.from).second) attempt->second.written = now;
  }
}

// Attempts that came to nothing may have had the same folder and clock, and were before it.
absl::Time CheckpointTimes::WrittenAt(const checkpoint::Manifest& manifest) const {
  absl::Time written = absl::InfinitePast();
  for (const auto& [id, attempt] : attempts_) {
    const bool is = attempt.clock == manifest.clock &&
                    absl::EndsWith(attempt.directory, absl::StrCat("/", manifest.name));
    if (is) written = std::max(written, attempt.written);
  }
  return written;
}

}  // namespace leeway::simulation
