#include "dpwa/observe/curves.h"

#include <cmath>
#include <limits>

#include "dpwa/base/numbers.h"

namespace dpwa::observe {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_names = 1024;

void drop_every_second(std::vector<double>& column) {
  for (std::size_t i = 0; 2 * i < column.size(); ++i) column[i] = column[2 * i];
  column.resize((column.size() + 1) / 2);
}

// Six digits are more than a screen shows, and half the bytes of all.
Json short_number(double value) {
  return std::isfinite(value) ? Json(with_digits(value, 6)) : Json();
}

}  // namespace

void Curves::add(double time, const std::map<std::string, Values>& nodes) {
  if (calls_++ % stride_ != 0) return;
  for (const auto& [name, values] : nodes) {
    for (const auto& [series, value] : values) {
      Column& column = nodes_[name][series];
      column.resize(times_.size(), missing);
      column.push_back(value);
    }
  }
  // Names that are new at each replacement of a machine do not add up.
  if (nodes_.size() > most_names)
    std::erase_if(nodes_, [&](const auto& each) { return !nodes.contains(each.first); });
  times_.push_back(time);
  for (auto& [name, series] : nodes_) {
    for (auto& [key, column] : series) column.resize(times_.size(), missing);
  }
  if (times_.size() >= most_points_) thin();
}

void Curves::thin() {
  drop_every_second(times_);
  for (auto& [name, series] : nodes_) {
    for (auto& [key, column] : series) drop_every_second(column);
  }
  stride_ *= 2;
}

Json Curves::to_json() const {
  Json out{{"time", times_}, {"nodes", Json::object()}};
  for (const auto& [name, series] : nodes_) {
    Json& node = out["nodes"][name] = Json::object();
    for (const auto& [key, column] : series) {
      Json& list = node[key] = Json::array();
      for (const double value : column) list.push_back(short_number(value));
    }
  }
  return out;
}

}  // namespace dpwa::observe
