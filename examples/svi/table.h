#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/svi/options.h"

namespace dpwa::svi {

// Numbers in rows and named columns; the last column is the one to predict.
struct Table {
  std::vector<std::string> columns;
  std::vector<double> values;  // row by row

  std::size_t rows() const { return columns.empty() ? 0 : values.size() / columns.size(); }
  double at(std::size_t row, std::size_t column) const {
    return values[row * columns.size() + column];
  }
};

// The table in a CSV file: a line of names, then numbers. Throws ConfigError with file, line
// and column for anything else, and for numbers that are not finite.
Table read_csv(const std::filesystem::path& file);

// 300 made-up rows: a curve whose noise grows, with a gap in the inputs. The same for the same
// seed.
Table make_synthetic(std::uint64_t seed);

// By --data and --data-dir.
Table load_table(const SviOptions& options);

// The rows in an order drawn from the seed, the same on every node: a fifth to test, the others to
// train.
struct Parts {
  Table train, test;
};
Parts split_rows(const Table& table, std::uint64_t seed);

// Mean and standard deviation of each column; 1 in place of a deviation of 0.
struct Scale {
  std::vector<double> mean, sd;
};
Scale scale_of(const Table& table);
Table standardised(Table table, const Scale& scale);

}  // namespace dpwa::svi
