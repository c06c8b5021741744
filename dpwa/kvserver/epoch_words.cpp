#include "dpwa/kvserver/epoch_words.h"

#include <algorithm>

namespace dpwa::kvserver {
namespace {

const char* word_of(kvstore::ServerState state) {
  switch (state) {
    case kvstore::ServerState::down:
      return "is down";
    case kvstore::ServerState::filling:
      return "is being filled";
    case kvstore::ServerState::up:
      return "is up";
  }
  return "";
}

}  // namespace

std::vector<std::string> words_for_change(const kvstore::Epoch& before,
                                          const kvstore::Epoch& after) {
  std::vector<std::string> lines;
  const std::string epoch = "epoch " + std::to_string(after.number) + ": ";
  for (std::size_t at = 0; at < after.servers.size(); ++at) {
    const kvstore::ServerEntry& server = after.servers[at];
    const bool same = at < before.servers.size() && before.servers[at] == server;
    if (!same) lines.push_back(epoch + "server '" + server.id.name + "' " + word_of(server.state));
  }
  for (const kvstore::WorkerEntry& worker : before.workers) {
    const kvstore::WorkerEntry* still = after.worker(worker.id.name);
    if (still != nullptr && still->id == worker.id) continue;
    const bool by_itself = std::ranges::count(after.left, worker.id.name) > 0;
    lines.push_back(epoch + "worker '" + worker.id.name + "' " +
                    (by_itself ? "has left" : "is left out"));
  }
  for (const kvstore::WorkerEntry& worker : after.workers) {
    const kvstore::WorkerEntry* known = before.worker(worker.id.name);
    if (known == nullptr || *known != worker) {
      lines.push_back(epoch + "worker '" + worker.id.name + "' takes part from step " +
                      std::to_string(worker.first_step) + " on");
    }
  }
  return lines;
}

}  // namespace dpwa::kvserver
