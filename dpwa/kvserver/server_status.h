#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/server_engine.h"
#include "dpwa/kvstore/snapshot_plan.h"
#include "dpwa/net/local_process.h"

namespace dpwa::kvserver {

// A server's answer to STATUS: one JSON object, described in docs/PROTOCOL.md.
std::string server_status(const LocalProcess& local, const kvstore::ServerEngine& engine,
                          std::string_view type, std::uint64_t memory_bytes,
                          const std::optional<kvstore::SnapshotStatus>& snapshots, TimePoint now);

}  // namespace dpwa::kvserver
