#include "tools/format/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway::tools {
namespace {

// Counts characters: all bytes but those of the form 10xxxxxx.
std::size_t Width(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(
      cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

}  // namespace

std::string TextTable(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  if (rows.empty()) return "";
  std::vector<std::size_t> widths(rows[0].size());
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string table;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Width(row[i]), ' ');
      absl::StrAppend(&table, i == 0 ? "" : "  ", i < left ? row[i] : space,
                      i < left ? space : row[i]);
    }
    table.erase(table.find_last_not_of(' ') + 1);
    table += "\n";
  }
  return table;
}

}  // namespace leeway::tools
