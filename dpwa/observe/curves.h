#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "dpwa/observe/node_status.h"

namespace dpwa::observe {

// Values of the nodes over the whole time of observation, in bounded memory: when all points are
// taken, every second one is dropped, and further ones are kept at half the rate. One thread.
class Curves {
 public:
  using Values = std::map<std::string, double>;  // by series, such as "loss"; none: no value

  explicit Curves(std::size_t most_points) : most_points_(most_points) {}

  // The values of all nodes at one time, in seconds since 1970.
  void add(double time, const std::map<std::string, Values>& nodes);

  // {"time": [...], "nodes": {"w1": {"loss": [...]}}}: every list has a value, or null, for each
  // time.
  Json to_json() const;

 private:
  void thin();

  using Column = std::vector<double>;  // NaN: no value
  const std::size_t most_points_;
  std::size_t stride_ = 1;  // of the calls of add(), the one that is kept
  std::size_t calls_ = 0;
  Column times_;
  std::map<std::string, std::map<std::string, Column>> nodes_;
};

}  // namespace dpwa::observe
