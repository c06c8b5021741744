#include "examples/train/run_state.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "examples/train/errors.h"

namespace dpwa::train {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunIdentity, node, data, split, model, optimizer, lr, schedule,
                                   batch_size, seed, nodes, rank, train_size)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunPosition, step, samples, train_seconds)

namespace {

// The conversion of a fraction or of a negative number to a count is not defined.
void require_counts(const json& example, const json& given) {
  for (const auto& [key, value] : example.items()) {
    if (value.is_object()) {
      require_counts(value, given.at(key));
    } else if (value.is_number_unsigned() && !given.at(key).is_number_unsigned()) {
      throw std::runtime_error(key + " is not a count");
    }
  }
}

}  // namespace

std::string to_json(const RunState& state) {
  const json adapter = {{"clock", state.adapter.clock},
                        {"lineage", state.adapter.lineage},
                        {"incarnation", state.adapter.incarnation}};
  return json{{"identity", state.identity}, {"position", state.position}, {"adapter", adapter}}
      .dump();
}

RunState run_state_from_json(const std::string& text) {
  const json all = json::parse(text);
  require_counts(json::parse(to_json(RunState{})), all);
  const json& adapter = all.at("adapter");
  RunState state;
  all.at("identity").get_to(state.identity);
  all.at("position").get_to(state.position);
  adapter.at("clock").get_to(state.adapter.clock);
  adapter.at("lineage").get_to(state.adapter.lineage);
  adapter.at("incarnation").get_to(state.adapter.incarnation);
  return state;
}

void require_same_run(const RunIdentity& checkpoint, const RunIdentity& here) {
  const auto same = [](const char* what, const json& there, const json& own) {
    if (there == own) return;
    throw UsageError(std::string("--resume: the checkpoint has ") + what + " " + there.dump() +
                     ", this run " + own.dump() + "; accepted: the same");
  };
  same("--name", checkpoint.node, here.node);
  same("--data", checkpoint.data, here.data);
  same("training samples", checkpoint.train_size, here.train_size);
  same("--split", checkpoint.split, here.split);
  same("--model", checkpoint.model, here.model);
  same("--optimizer", checkpoint.optimizer, here.optimizer);
  same("--lr", checkpoint.lr, here.lr);
  same("--schedule", checkpoint.schedule, here.schedule);
  same("--batch-size", checkpoint.batch_size, here.batch_size);
  same("--seed", checkpoint.seed, here.seed);
  same("cluster nodes", checkpoint.nodes, here.nodes);
  same("place in the cluster file", checkpoint.rank, here.rank);
}

}  // namespace dpwa::train
