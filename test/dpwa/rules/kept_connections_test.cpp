#include "dpwa/rules/kept_connections.h"

#include <doctest/doctest.h>

namespace dpwa {

TEST_CASE("the connection that was used longest ago is closed for one too many") {
  KeptConnections kept(2);
  CHECK_FALSE(kept.use(1));
  CHECK_FALSE(kept.use(2));
  CHECK_FALSE(kept.use(1));
  CHECK(kept.use(3) == PeerId{2});
  CHECK_FALSE(kept.use(3));
  CHECK(kept.use(2) == PeerId{1});
}

}  // namespace dpwa
