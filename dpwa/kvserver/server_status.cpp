#include "dpwa/kvserver/server_status.h"

#include <nlohmann/json.hpp>

#include "dpwa/node/status_document.h"

namespace dpwa::kvserver {
namespace {

const char* word_for(const kvstore::Epoch& epoch, const kvstore::MemberId& self) {
  if (epoch.number == 0) return "starting";
  if (!epoch.has(self)) return "waiting";  // to be taken in again
  const auto state = epoch.servers[*epoch.server(self.name)].state;
  return state == kvstore::ServerState::up ? "up" : "filling";
}

}  // namespace

std::string server_status(const LocalProcess& local, const kvstore::ServerEngine& engine,
                          std::string_view type, std::uint64_t memory_bytes,
                          const std::optional<kvstore::SnapshotStatus>& snapshots, TimePoint now) {
  const kvstore::Epoch& epoch = engine.epoch();
  const kvstore::ShardEngine& shard = engine.shard();
  const kvstore::ShardCounts& counts = shard.counts();
  nlohmann::ordered_json status;
  status["role"] = "kvserver";
  status["type"] = type;
  status["state"] = word_for(epoch, engine.self());
  status["epoch"] = epoch.number;
  status["clock"] = shard.clock();
  status["slices"] = shard.size();
  status["bytes"] = shard.bytes();
  status["memory_bytes"] = memory_bytes;
  status["updates"] = counts.updates;
  status["dropped"] = counts.dropped;
  status["duplicates"] = counts.duplicates;
  status["not_finite"] = counts.not_finite;
  status["without_replica"] = shard.without_replica();
  // What was lost is not waited for.
  const std::vector<std::string> lost = engine.started_again(now);
  status["lost"] = lost;
  status["missing"] = lost.empty() ? engine.missing(now) : std::vector<std::string>();
  status["undecided"] = engine.undecided(now);
  if (snapshots) {
    status["snapshot"] = {{"number", snapshots->number},
                          {"age_s", snapshots->age_s},
                          {"started_from", snapshots->started_from},
                          {"failures", snapshots->failures},
                          {"failing", snapshots->failing}};
  }
  status["servers"] = nlohmann::ordered_json::array();
  for (const kvstore::ServerEntry& server : epoch.servers) {
    const char* const words[] = {"", "down", "filling", "up"};
    status["servers"].push_back(
        {{"name", server.id.name}, {"state", words[static_cast<std::size_t>(server.state)]}});
  }
  status["workers"] = nlohmann::ordered_json::array();
  for (const kvstore::WorkerEntry& worker : epoch.workers) {
    status["workers"].push_back({{"name", worker.id.name}, {"first_step", worker.first_step}});
  }
  status["at_end"] = nlohmann::json::array();
  for (const kvstore::MemberId& worker : epoch.at_end) status["at_end"].push_back(worker.name);
  return status_document(local, status);
}

}  // namespace dpwa::kvserver
