#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace dpwa::cli {

// A table for a terminal: columns as wide as their widest cell, two spaces apart. A row may be
// shorter than the head; its last cell then runs on and widens nothing. The last cell of a row that
// would be wider than `width` stands below the row, on lines of its own; that of the head is left
// out then. A first cell with which the others would not fit stands above its row.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head, std::size_t width = std::string::npos)
      : rows_{std::move(head)}, width_(width) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  const std::size_t width_;
};

}  // namespace dpwa::cli
