#include "dpwa/cli/text_table.h"

#include <algorithm>
#include <ostream>
#include <string_view>

namespace dpwa::cli {
namespace {

constexpr std::string_view indent = "    ";

// Where to break a text that is longer than `most`: after a comma or semicolon, else between words.
std::size_t end_of_line(std::string_view text, std::size_t most) {
  if (const auto mark = text.find_last_of(",;", most - 1); mark != std::string::npos)
    return mark + 1;
  const auto space = text.rfind(' ', most);
  return std::min(space == std::string::npos ? text.find(' ') : space, text.size());
}

// `text` in lines of at most `width`, with the indentation; a longer word is not broken.
std::string in_lines(std::string_view text, std::size_t width) {
  const std::size_t most = width - indent.size();
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.size() <= most ? text.size() : end_of_line(text, most);
    lines.append("\n").append(indent).append(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// How wide the first column may be, so that all columns but the last fit in `width`.
std::size_t room_for_first(const std::vector<std::size_t>& widths, std::size_t width) {
  std::size_t others = 0;
  for (std::size_t i = 1; i + 1 < widths.size(); ++i) others += widths[i] + 2;
  return width - std::min(width, others);
}

}  // namespace

void TextTable::print(std::ostream& out) const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& row : rows_) {
    const std::size_t fixed = row.size() < columns ? row.size() - 1 : columns;
    for (std::size_t i = 0; i < fixed; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const std::size_t first = room_for_first(widths, width_);
  widths[0] = 0;
  for (const auto& row : rows_) {
    if (row[0].size() <= first) widths[0] = std::max(widths[0], row[0].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    const bool apart = row[0].size() > first;
    if (apart) {
      out << row[0] << '\n';
      line.assign(widths[0] + 2, ' ');
    }
    for (std::size_t i = apart ? 1 : 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      if (last && i > 0 && line.size() + row[i].size() > width_) {
        line.erase(line.find_last_not_of(' ') + 1);
        if (&row != &rows_.front()) line += in_lines(row[i], width_);
        if (line.starts_with('\n')) line.erase(0, 1);
        break;
      }
      const std::size_t pad = last ? 0 : widths[i] - std::min(widths[i], row[i].size()) + 2;
      line += row[i] + std::string(pad, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace dpwa::cli
