#pragma once

#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/field.h"

namespace dpwa::config {

// The form of the original dpwa (loudinthecloud/dpwa): fetch_probability, timeout_ms, interpolation
// as a name, divergence_threshold, and the parameters of each method at the top level, as a list of
// single-key maps or as one map. Sections of our own form may stand beside them.

// Every top-level key of that form, 'nodes' aside.
std::vector<std::string> original_keys();
// What makes the file one of that form: a list, or a setting as the original names it; empty when
// it is of our own.
std::string original_form_by(bool is_list, const Section& root);

// Sets the defaults of the original: it blends x <- (1-f) x + f x_peer (lerp), has no bound on
// staleness, and takes no average at the end.
void set_original_defaults(GossipConfig& gossip);
// Reads its keys. Parameters of methods that are not selected are checked and left unused. Throws
// ConfigError, also for a setting that a section gives as well.
void read_original(const Section& root, Config& config);
// The original waits for the whole pull in update_wait: unless the file says otherwise, the budget
// of a step is the timeout. Called when both forms have been read.
void finish_original(const Section& root, GossipConfig& gossip);

}  // namespace dpwa::config
