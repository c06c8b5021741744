#include <stdexcept>

#include "adapters/launch/meeting.h"

namespace dpwa::launch {

std::vector<NodeEntry> meet(const LaunchPlace& place, const std::string&, const OwnEndpoint&) {
  throw std::runtime_error("the processes of " + place.launcher +
                           " cannot meet, as this LibTorch was built without c10d; accepted: a "
                           "cluster file that lists the nodes");
}

}  // namespace dpwa::launch
