#pragma once

#include <memory>

#include "bench/serve.h"

namespace dpwa::bench {

// The torch-free kinds. Each is described where it is defined.
std::unique_ptr<Measurer> make_memory_passes(const Json& job);
std::unique_ptr<Measurer> make_peer_choice(const Json& job);
std::unique_ptr<Measurer> make_pull_node(const Json& job);
std::unique_ptr<Measurer> make_raw_node(const Json& job);
std::unique_ptr<Measurer> make_store_worker(const Json& job);  // a "pull" is a push and a pull
std::unique_ptr<Measurer> make_store_server(const Json& job);

}  // namespace dpwa::bench
