#pragma once

#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore::testing {

// Workers of tests, each in its first run.
inline const MemberId w0{"w0", 1};
inline const MemberId w1{"w1", 1};
inline const MemberId w2{"w2", 1};
inline const MemberId w3{"w3", 1};

}  // namespace dpwa::kvstore::testing
