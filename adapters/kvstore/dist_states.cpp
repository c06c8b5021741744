#include <stdexcept>
#include <utility>

#include "adapters/kvstore/dist_store.h"
#include "dpwa/kvstore/slices.h"

namespace dpwa::kvstore {

using kvclient::Outcome;
using kvclient::Ticket;

namespace {

std::vector<Slice> slices_of(const Key& key, const ValueSpec& spec, const Config& config) {
  return cut_into_slices(key, spec.elements(),
                         static_cast<std::uint32_t>(config.kvstore.servers.size()));
}

}  // namespace

SavedStates DistStore::states() {
  if (!optimizer_) throw KVStoreError("optimizer states of a store without an optimizer");
  check_takes_part();
  finish_pushes();
  std::vector<std::pair<Key, Ticket>> asked;
  for (const auto& [key, spec] : specs_.all()) asked.emplace_back(key, client_->ask_states(key));
  SavedStates states{*optimizer_, {}};
  std::string refused;
  for (const auto& [key, ticket] : asked) {
    const Outcome outcome = wait(ticket, "the optimizer states of key " + key.text());
    if (outcome.left_out) refused = "worker " + config_.self + " was left out meanwhile";
    if (is_error(outcome.kind)) refused = outcome.problem;
    const ValueSpec& spec = specs_.all().at(key);
    const auto slices = slices_of(key, spec, config_);
    for (std::size_t i = 0; refused.empty() && i < slices.size(); ++i) {
      const StateMessage& given = outcome.states.at(i);
      if (given.optimizer.empty()) continue;  // no update yet
      auto state = OptimizerState::restored(*optimizer_, spec.dtype, slices[i].elements.count,
                                            given.steps, given.state);
      const auto options = decode_options(given.optimizer);
      if (!state || !options || options->kind != optimizer_->kind) {
        refused = specs_.call_of("save", key) + last_by_another;
        break;
      }
      states.ranges.push_back({key, spec.dtype, slices[i].elements, *std::move(state)});
    }
  }
  if (!refused.empty()) throw KVStoreError(refused);
  return states;
}

void DistStore::load(const SavedStates& states) {
  const OptimizerOptions options = options_to_load(optimizer_, states);
  const auto form = encode(options);
  std::map<Key, std::vector<StateMessage>> placed;
  for (const SavedRange& range : states.ranges) {
    if (placed.contains(range.key)) continue;
    const ValueSpec& spec = specs_.at(range.key, specs_.call_of("load", range.key));
    for (const Slice& slice : slices_of(range.key, spec, config_)) {
      try {
        const OptimizerState state = state_of_range(states, range.key, spec.dtype, slice.elements);
        StateMessage message;
        message.optimizer.assign(form.begin(), form.end());
        message.steps = state.steps();
        message.state.assign(state.bytes().begin(), state.bytes().end());
        placed[range.key].push_back(std::move(message));
      } catch (const std::invalid_argument& mismatch) {
        throw KVStoreError(mismatch.what());
      }
    }
  }
  check_takes_part();
  finish_pushes();
  std::vector<Ticket> tickets;
  for (auto& [key, messages] : placed)
    tickets.push_back(client_->place_states(key, std::move(messages)));
  std::string refused;
  for (const Ticket ticket : tickets) {
    const Outcome outcome = wait(ticket, "the servers to place optimizer states");
    if (outcome.left_out) refused = "worker " + config_.self + " was left out meanwhile";
    if (is_error(outcome.kind)) refused = outcome.problem;
  }
  if (!refused.empty()) throw KVStoreError(refused);
  set_optimizer(options);
}

}  // namespace dpwa::kvstore
