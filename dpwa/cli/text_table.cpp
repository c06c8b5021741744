#include "dpwa/cli/text_table.h"

#include <algorithm>
#include <ostream>

namespace dpwa::cli {

void TextTable::print(std::ostream& out) const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& row : rows_) {
    const std::size_t fixed = row.size() < columns ? row.size() - 1 : columns;
    for (std::size_t i = 0; i < fixed; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const std::size_t pad = last ? 0 : widths[i] - std::min(widths[i], row[i].size()) + 2;
      line += row[i] + std::string(pad, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace dpwa::cli
