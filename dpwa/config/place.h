#pragma once

#include <cstddef>

#include "dpwa/config/config.h"

namespace dpwa {

// A node among those that train together.
struct Place {
  std::size_t rank = 0;  // below size
  std::size_t size = 1;
};

// From the cluster file: the position in `nodes`. A configuration without `self` has one node.
inline Place place_in_file(const Config& config) {
  if (config.self.empty()) return {};
  return {config.self_index(), config.nodes.size()};
}

}  // namespace dpwa
