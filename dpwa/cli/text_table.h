#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace dpwa::cli {

// A table for a terminal: columns as wide as their widest cell, two spaces apart. A row may be
// shorter than the head; its last cell then runs on and widens nothing.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace dpwa::cli
