#include "ps/store/row_widths.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

using Widths = absl::flat_hash_map<std::uint64_t, std::uint32_t>;

absl::Status CheckAgainst(const Widths& widths, const PushView& push) {
  const auto keys = push.keys.as<std::uint64_t>();
  const auto own = push.widths.as<std::uint32_t>();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = widths.find(keys[i]);
    if (found == widths.end() || found->second == own[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("it has ", own[i], " elements for key ", keys[i],
                                                   ", to which another worker pushed ",
                                                   found->second, " in this clock"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<absl::Status> CheckWidthsTogether(const ShardStore& store,
                                              std::span<const PushView> pushes) {
  Widths widths;
  std::vector<absl::Status> all;
  all.reserve(pushes.size());
  for (const PushView& push : pushes) {
    absl::Status fits = store.Check(push);
    if (fits.ok()) fits = CheckAgainst(widths, push);
    all.push_back(fits);
    if (!fits.ok()) continue;
    const auto keys = push.keys.as<std::uint64_t>();
    const auto own = push.widths.as<std::uint32_t>();
    for (std::size_t i = 0; i < keys.size(); ++i) widths.try_emplace(keys[i], own[i]);
  }
  return all;
}

}  // namespace leeway::ps
