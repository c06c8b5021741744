#include "dpwa/config/config.h"

namespace dpwa {

std::size_t Config::self_index() const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!self.empty() && nodes[i].name == self) return i;
  }
  throw std::logic_error("the configuration has no own node: load it with a node name");
}

}  // namespace dpwa
