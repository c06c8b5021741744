#pragma once

#include "dpwa/diagnosis/observation.h"
#include "dpwa/observe/cluster_query.h"

namespace dpwa::observe {

// What the status documents of a cluster say for dpwa why and dpwa top. The documents are data from
// the network: what is missing or of another type is 0, false or empty. `at_s`: when they were
// asked, on any clock.
diagnosis::Observation observation_of(const ClusterStatus& found, double at_s);

}  // namespace dpwa::observe
