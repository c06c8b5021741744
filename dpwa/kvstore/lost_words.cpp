#include "dpwa/kvstore/lost_words.h"

namespace dpwa::kvstore {

std::string words_for_lost(const std::vector<std::string>& servers) {
  std::string names;
  for (const std::string& name : servers) names += (names.empty() ? "'" : ", '") + name + "'";
  const bool one = servers.size() == 1;
  return std::string(one ? "server " : "servers ") + names +
         (one ? " was started again, and its" : " were started again, and their") +
         " values and the state of the optimizer are lost; end all processes and start all of them "
         "again, workers from their checkpoints (dpwa-train --resume): they continue from the last "
         "snapshot (kvstore.snapshots) or, without one, from "
         "the weights of the first worker";
}

}  // namespace dpwa::kvstore
