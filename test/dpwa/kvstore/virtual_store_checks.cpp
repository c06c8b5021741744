#include <algorithm>
#include <string>

#include "test/dpwa/kvstore/virtual_store.h"

namespace dpwa::kvstore::testing {

std::uint64_t VirtualStore::counted_steps(const std::vector<double>& values, std::size_t row,
                                          std::uint64_t step) const {
  const double word = values[row * row_words + 1 + step / bits];
  return static_cast<std::uint64_t>(word) >> step % bits & 1;
}

// No two epochs have one number, where processes have later numbers than the epochs before them.
void VirtualStore::check_epoch(const Epoch& epoch) {
  if (!options_.numbers_by_time) return;
  const auto [known, is_new] = epochs_.try_emplace(epoch.number, epoch);
  if (epoch.number > 0 && !is_new && known->second != epoch)
    fail("two epochs have number " + std::to_string(epoch.number));
}

// The step from which on all others wait for this worker. While its admission is decided they may
// make steps, of which its own are then dropped.
std::uint64_t VirtualStore::sure_from(const WorkerEntry& worker) {
  return worker.first_step == 0 ? 0 : worker.first_step + 10;
}

// What the answer to a pull has to have in it, and (merged) must not have.
void VirtualStore::check_pull(std::size_t at, const WorkerEngine::Pulled& pulled) {
  if (options_.optimizer != OptimizerKind::sgd || !pulled.values) return;
  if (workers_[at].finishing) return check_final(at, pulled);
  const auto values = doubles_of(*pulled.values);
  const ShardRules rules = rules_of(options_.type, options_.staleness);
  const std::uint64_t below = pulled.clock > rules.staleness ? pulled.clock - rules.staleness : 0;
  const auto key = static_cast<std::uint64_t>(pulled.slice.key.number());
  for (const WorkerEntry& entry : workers_[at].engine->epoch().workers) {
    const std::size_t row = rows_.at({entry.id.name, entry.id.incarnation});
    const auto complain = [&](std::uint64_t step, const std::string& what) {
      failures_.push_back("worker " + std::to_string(at) + " at " + std::to_string(pulled.clock) +
                          ": key " + std::to_string(key) + what + "step " + std::to_string(step) +
                          " of " + entry.id.name);
    };
    // problem() looks at all of them, once.
    const std::uint64_t recent = below > 50 ? below - 50 : 0;
    for (std::uint64_t step = std::max(sure_from(entry), recent); step < below; ++step) {
      const auto found = outcomes_.find({row, key, step});
      if (found != outcomes_.end() && (found->second.refused || !found->second.finite)) continue;
      if (counted_steps(values, row, step) == 0) complain(step, " is without ");
    }
    const auto* const own = workers_[at].engine->epoch().worker("w" + std::to_string(at));
    const bool sure = own != nullptr && pulled.clock >= sure_from(*own);
    if (rules.merged && sure && counted_steps(values, row, pulled.clock) != 0) {
      complain(pulled.clock, " is ahead with ");
    }
  }
}

// No worker trains: all that was counted is in the values.
void VirtualStore::check_final(std::size_t at, const WorkerEngine::Pulled& pulled) {
  const auto values = doubles_of(*pulled.values);
  for (const auto& [which, outcome] : outcomes_) {
    const auto& [row, key, step] = which;
    if (pulled.slice.key.number() != static_cast<std::int64_t>(key)) continue;
    if (!outcome.counted || !outcome.finite || counted_steps(values, row, step) != 0) continue;
    failures_.push_back("worker " + std::to_string(at) + ": the final value of key " +
                        std::to_string(key) + " is without step " + std::to_string(step));
  }
}

std::vector<double> VirtualStore::values(std::uint64_t key) const {
  const SliceId id{static_cast<std::int64_t>(key), 0};
  for (std::size_t at = 0; at < servers_.size(); ++at) {
    const Server& server = servers_[at];
    if (!server.engine || world_.frozen(at)) continue;
    const auto home = cut_into_slices(id.key, elements, options_.servers).front().server;
    const Epoch& epoch = server.engine->epoch();
    if (epoch.number == 0) continue;
    const auto primary = holders_of(epoch, home, options_.replicas).primary;
    if (primary != index_of(server.engine->self().name)) continue;
    if (const auto view = server.engine->shard().view(id)) return doubles_of(view->values);
  }
  return {};
}

// A server in an earlier epoch than others has values of its own, without the last updates.
bool VirtualStore::serves_all(std::uint64_t run) const {
  std::uint64_t last = 0;
  for (const Worker& worker : workers_)
    if (worker.engine) last = std::max(last, worker.engine->epoch().number);
  for (const Server& server : servers_)
    if (server.engine) last = std::max(last, server.engine->epoch().number);
  const auto serves = [&](std::size_t at) {
    if (!servers_[at].engine || world_.frozen(at)) return false;
    const Epoch& epoch = servers_[at].engine->epoch();
    return epoch.number == last && epoch.run == run && epoch.has(servers_[at].engine->self()) &&
           epoch.servers[at].state == ServerState::up;
  };
  for (std::size_t home = 0; home < servers_.size(); ++home) {
    const std::size_t other = options_.replicas ? (home + 1) % servers_.size() : home;
    if (!serves(home) && !serves(other)) return false;
  }
  return true;
}

bool VirtualStore::replicas_agree() const {
  for (std::uint64_t key = 0; key < options_.keys; ++key) {
    const SliceId id{static_cast<std::int64_t>(key), 0};
    const auto home = cut_into_slices(id.key, elements, options_.servers).front().server;
    const Server& first = servers_[home];
    const Server& second = servers_[(home + 1) % servers_.size()];
    if (!first.engine || !second.engine) return false;
    const auto one = first.engine->shard().view(id);
    const auto two = second.engine->shard().view(id);
    if (!one || !two || one->version != two->version || one->round != two->round ||
        !std::ranges::equal(one->values, two->values)) {
      return false;
    }
  }
  return true;
}

std::string VirtualStore::problem() const {
  if (!failures_.empty()) return failures_.front();
  for (std::uint64_t key = 0; key < options_.keys; ++key) {
    const auto found = values(key);
    if (found.empty()) return "key " + std::to_string(key) + " is lost";
    std::vector<double> numbers(max_lives);
    for (const auto& [which, outcome] : outcomes_) {
      const auto& [row, of_key, step] = which;
      if (of_key != key) continue;
      const bool counted = counted_steps(found, row, step) != 0;
      const std::string what = "key " + std::to_string(key) + ", row " + std::to_string(row) +
                               ", step " + std::to_string(step);
      // That it was refused may be heard of after the end of its round.
      if (outcome.counted && outcome.finite && !counted)
        return what + " was acknowledged and is lost";
      if ((outcome.refused || !outcome.finite) && counted) return what + " was refused and counts";
      numbers[row] += counted ? 1 : 0;
    }
    for (std::size_t row = 0; row < max_lives; ++row) {
      if (numbers[row] != found[row * row_words]) {
        return "key " + std::to_string(key) + ", row " + std::to_string(row) + ": " +
               std::to_string(found[row * row_words]) + " pushes, " + std::to_string(numbers[row]) +
               " steps";
      }
    }
  }
  return {};
}

std::string VirtualStore::double_count() const {
  for (std::uint64_t key = 0; key < options_.keys; ++key) {
    const auto found = values(key);
    for (std::size_t row = 0; !found.empty() && row < max_lives; ++row) {
      double steps = 0;
      for (std::uint64_t step = 0; step < bits * (row_words - 1); ++step)
        steps += static_cast<double>(counted_steps(found, row, step));
      if (steps != found[row * row_words])
        return "key " + std::to_string(key) + ", row " + std::to_string(row) + ": " +
               std::to_string(found[row * row_words]) + " pushes, " + std::to_string(steps) +
               " steps";
    }
  }
  return {};
}

std::string VirtualStore::problem_of(std::uint32_t snapshot) const {
  const auto found = snapshots_.find(snapshot);
  const std::size_t keys = options_.keys + options_.unused_keys;
  if (found == snapshots_.end() || found->second.size() != keys) return "incomplete";
  const bool merged = rules_of(options_.type, options_.staleness).merged;
  const ShardEngine::Captured& first = found->second.begin()->second;
  const auto expected = doubles_of(*first.state.values);
  for (const auto& [key, each] : found->second) {
    if (key >= options_.keys) {
      if (each.state.version != 1) return "an unused key was changed";
      continue;
    }
    if (merged && each.state.round != first.state.round) return "two rounds";
    const auto values = doubles_of(*each.state.values);
    for (std::size_t i = 0; i < elements; ++i) {
      if (values[i] != expected[i]) {
        return "key " + std::to_string(key) + " has other steps of row " +
               std::to_string(i / row_words);
      }
    }
  }
  return {};
}

}  // namespace dpwa::kvstore::testing
