#include "scheduler/tables/codec_chooser.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_format.h"
#include "compress/codec_cost.h"
#include "proto/messages/limits.h"

namespace leeway::scheduler {

void CodecChooser::OnReport(std::uint32_t worker, const proto::CodecReport& report) {
  tables_[report.table].reports[worker] = report;
}

void CodecChooser::Forget(std::uint32_t worker) {
  for (auto& [id, table] : tables_) table.reports.erase(worker);
}

std::optional<CodecChooser::Costs> CodecChooser::CostsOf(std::uint32_t id,
                                                         std::size_t codecs) const {
  const auto found = tables_.find(id);
  if (found == tables_.end()) return std::nullopt;
  std::optional<Costs> costs;
  for (const auto& [worker, report] : found->second.reports) {
    if (report.costs.size() != codecs) continue;
    if (!costs.has_value()) {
      costs = Costs{.by_codec = std::vector<double>(codecs), .lossy = report.lossy};
    }
    for (std::size_t i = 0; i < codecs; ++i) {
      costs->by_codec[i] = std::max(costs->by_codec[i], report.costs[i]);
    }
    if (costs->link_bytes_per_s == 0 || report.link_bytes_per_s < costs->link_bytes_per_s) {
      costs->slowest = worker;
      costs->link_bytes_per_s = report.link_bytes_per_s;
    }
  }
  return costs;
}

std::optional<std::uint32_t> CodecChooser::Better(std::uint32_t id, const Costs& costs,
                                                  std::uint32_t present) {
  const std::size_t codecs = costs.by_codec.size();
  if (present >= codecs) return std::nullopt;
  std::array<bool, proto::kTableCodecsMax + 1> lossy{};
  for (std::size_t i = 0; i < codecs; ++i) lossy[i] = (costs.lossy >> i & 1) != 0;
  const std::uint32_t wanted =
      compress::ChooseCodec(costs.by_codec, std::span<const bool>(lossy).first(codecs), present);
  Table& table = tables_[id];
  if (wanted != table.wanted) table.looks = 0;
  table.wanted = wanted;
  if (wanted == present || ++table.looks < kLooksAlike) return std::nullopt;
  table.looks = 0;
  return wanted;
}

std::string CodecChooser::Reason(const Costs& costs, std::uint32_t present, std::uint32_t better,
                                 const std::vector<std::string>& texts, const std::string& worker) {
  return absl::StrFormat("%s sends %.4g MB/s: %.3g ns a byte with %s, %.3g with %s", worker,
                         costs.link_bytes_per_s / 1e6, costs.by_codec[present], texts[present],
                         costs.by_codec[better], texts[better]);
}

}  // namespace leeway::scheduler
