#include "dpwa/kvserver/epoch_words.h"

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

EventKind event_of(kvstore::ServerState state) {
  switch (state) {
    case kvstore::ServerState::down:
      return EventKind::failed_over;
    case kvstore::ServerState::filling:
      return EventKind::returned;
    case kvstore::ServerState::up:
      break;
  }
  return EventKind::admitted;
}

EventKind event_of(kvstore::WorkerChange::Kind kind) {
  using Kind = kvstore::WorkerChange::Kind;
  if (kind == Kind::came) return EventKind::admitted;
  return kind == Kind::lost ? EventKind::left_out : EventKind::left;
}

std::string words_for(const kvstore::WorkerChange& change) {
  using Kind = kvstore::WorkerChange::Kind;
  if (change.kind == Kind::came && change.worker.since != 0) return " takes part";
  if (change.kind == Kind::came)
    return " takes part from step " + std::to_string(change.worker.first_step) + " on";
  if (change.kind == Kind::done) return " is done, and waits for the others";
  return change.kind == Kind::lost ? " is left out" : " has left";
}

}  // namespace

std::vector<EpochLine> EpochWords::look(
    const kvstore::Epoch& epoch, const std::function<bool(const kvstore::MemberId&)>& has_left) {
  std::vector<EpochLine> lines;
  if (epoch.number == number_) return lines;
  // Numbers go on from run to run, and the first one of all is a time.
  const std::string begin = "epoch " + std::to_string(epoch.number - epoch.run + 1) + ": ";
  for (std::size_t at = 0; at < epoch.servers.size(); ++at) {
    const kvstore::ServerEntry& server = epoch.servers[at];
    const bool same = at < servers_.size() && servers_[at] == server;
    if (!same)
      lines.push_back({event_of(server.state),
                       begin + "server '" + server.id.name + "' " + word_of(server.state)});
  }
  const auto ending = [&](const kvstore::WorkerEntry& worker) {
    // With steps of its own for each key it would be in the list of the epoch.
    return worker.since == 0 && has_left(worker.id) ? kvstore::WorkerChange::Kind::left
                                                    : kvstore::WorkerChange::Kind::lost;
  };
  for (const kvstore::WorkerChange& change : workers_.look(epoch, ending))
    lines.push_back({event_of(change.kind),
                     begin + "worker '" + change.worker.id.name + "'" + words_for(change)});
  number_ = epoch.number;
  servers_ = epoch.servers;
  return lines;
}

}  // namespace dpwa::kvserver
