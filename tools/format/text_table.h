// TextTable formats rows of text as lines with aligned columns.
#ifndef LEEWAY_TOOLS_FORMAT_TEXT_TABLE_H_
#define LEEWAY_TOOLS_FORMAT_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace leeway::tools {

// One line for each row, two spaces between columns. The first `left` columns are aligned to the
// left, the rest to the right; no line ends with spaces. Rows have as many cells as the first;
// cells are UTF-8.
std::string TextTable(const std::vector<std::vector<std::string>>& rows, std::size_t left = 1);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_TEXT_TABLE_H_
