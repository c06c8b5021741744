#include "dpwa/config/names.h"

namespace dpwa::config {

const char* name_of(Backend backend) {
  switch (backend) {
    case Backend::gossip:
      return "gossip";
    case Backend::collective:
      return "collective";
    case Backend::kvstore:
      return "kvstore";
    case Backend::null:
      return "null";
  }
  return "";
}

const char* name_of(CollectiveEngine engine) {
  switch (engine) {
    case CollectiveEngine::automatic:
      return "auto";
    case CollectiveEngine::gloo:
      return "gloo";
    case CollectiveEngine::nccl:
      return "nccl";
    case CollectiveEngine::mpi:
      return "mpi";
  }
  return "";
}

const char* name_of(GradientCompression compression) {
  switch (compression) {
    case GradientCompression::none:
      return "none";
    case GradientCompression::fp16:
      return "fp16";
    case GradientCompression::bf16:
      return "bf16";
  }
  return "";
}

const char* name_of(OnLostRank policy) {
  switch (policy) {
    case OnLostRank::stop:
      return "stop";
    case OnLostRank::shrink:
      return "shrink";
    case OnLostRank::gossip:
      return "gossip";
  }
  return "";
}

const char* name_of(Minority policy) {
  return policy == Minority::gossip ? "gossip" : "stop";
}

}  // namespace dpwa::config
