#include "examples/svi/table.h"

#include <algorithm>
#include <boost/algorithm/string/split.hpp>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>

#include "dpwa/base/random.h"
#include "dpwa/config/config.h"
#include "dpwa/config/text.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/train/files.h"
#include "examples/train/options.h"

namespace dpwa::svi {
namespace {

constexpr std::size_t largest_file = 64 << 20;  // bytes
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::vector<std::string> cells_of(std::string line) {
  std::erase_if(line, [](char c) { return c == '"' || c == '\r' || c == ' '; });
  std::vector<std::string> cells;
  if (!line.empty()) boost::algorithm::split(cells, line, [](char c) { return c == ','; });
  return cells;
}

Table with_rows(const Table& table, const std::vector<std::size_t>& rows) {
  Table part{table.columns, {}};
  for (const std::size_t row : rows)
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      part.values.push_back(table.at(row, column));
  return part;
}

}  // namespace

Table read_csv(const std::filesystem::path& file) {
  const auto bytes = train::read_file(file, largest_file);
  std::string all(bytes.begin(), bytes.end());
  if (all.starts_with(byte_order_mark)) all.erase(0, byte_order_mark.size());
  if (all.empty())
    throw ConfigError(file.string() +
                      ": the file is empty; accepted: a line of names and at least two rows");
  std::istringstream text(all);
  Table table;
  std::size_t number = 0;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(file.string() + ":" + std::to_string(number) + ": " + why);
  };
  for (std::string line; std::getline(text, line);) {
    ++number;
    const auto cells = cells_of(line);
    if (cells.empty()) continue;
    if (table.columns.empty()) {
      table.columns = cells;
      if (std::ranges::all_of(
              cells, [](const auto& cell) { return config::parse_number(cell).has_value(); }))
        refuse("numbers in place of names; accepted: a line of names, then lines of numbers");
      if (cells.size() < 2) refuse("one column; accepted: at least one input, then the output");
      continue;
    }
    if (cells.size() != table.columns.size())
      refuse(std::to_string(cells.size()) +
             " values; accepted: " + std::to_string(table.columns.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto value = config::parse_number(cells[i]);
      if (!value)
        refuse("column '" + table.columns[i] + "': " + config::shown(cells[i]) +
               " is not accepted; accepted: a finite number");
      table.values.push_back(*value);
    }
  }
  if (table.rows() < 2) refuse("no data; accepted: a line of names and at least two rows");
  return table;
}

Table make_synthetic(std::uint64_t seed) {
  constexpr int rows = 300;
  Random random(SeedStreams(seed).common(SeedRole::synthetic));
  Table table{{"x", "y"}, {}};
  for (int i = 0; i < rows; ++i) {
    const double side = i % 2 == 0 ? random.uniform(-3, -0.5) : random.uniform(0.5, 3);
    const double noise = 0.05 + 0.1 * std::abs(side);
    table.values.push_back(side);
    table.values.push_back(std::sin(2 * side) + random.normal(0, noise));
  }
  return table;
}

Table load_table(const SviOptions& options) {
  if (options.data == DataKind::synthetic) return make_synthetic(options.seed);
  return read_csv(options.data_dir /
                  (std::string(config::name_in(data_names, options.data)) + ".csv"));
}

Parts split_rows(const Table& table, std::uint64_t seed) {
  std::vector<std::size_t> order(table.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(SeedStreams(seed).common(SeedRole::split));
  shuffle(order, random);
  const auto border =
      order.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, order.size() / 5));
  return {with_rows(table, {border, order.end()}), with_rows(table, {order.begin(), border})};
}

Scale scale_of(const Table& table) {
  Scale scale;
  const auto rows = static_cast<double>(table.rows());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    double sum = 0, squares = 0;
    for (std::size_t row = 0; row < table.rows(); ++row) sum += table.at(row, column);
    const double mean = sum / rows;
    for (std::size_t row = 0; row < table.rows(); ++row)
      squares += std::pow(table.at(row, column) - mean, 2);
    scale.mean.push_back(mean);
    scale.sd.push_back(squares > 0 ? std::sqrt(squares / rows) : 1);
  }
  return scale;
}

Table standardised(Table table, const Scale& scale) {
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const std::size_t column = i % table.columns.size();
    table.values[i] = (table.values[i] - scale.mean[column]) / scale.sd[column];
  }
  return table;
}

}  // namespace dpwa::svi
