#include "dpwa/base/version.h"

namespace dpwa {

std::string_view version() {
  return DPWA_VERSION;
}

}  // namespace dpwa
