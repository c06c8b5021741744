#include "examples/train/run_state.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dpwa/config/config.h"
#include "dpwa/parallel/shares.h"

namespace dpwa::train {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunIdentity, node, data, split, model, optimizer, lr, schedule,
                                   batch_size, seed, nodes, rank, train_size, by_place)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunPosition, step, samples, train_seconds)

namespace {

// The conversion of a fraction or of a negative number to a count is not defined.
std::uint64_t count_in(const json& object, const std::string& key) {
  if (!object.at(key).is_number_unsigned()) throw std::runtime_error(key + " is not a count");
  return object.at(key).get<std::uint64_t>();
}

void require_counts(const json& example, const json& given) {
  for (const auto& [key, value] : example.items()) {
    if (value.is_object()) {
      require_counts(value, given.at(key));
    } else if (value.is_number_unsigned()) {
      count_in(given, key);
    }
  }
}

std::string part_of(const RunIdentity& run) {
  const std::string number = std::to_string(run.rank + 1);
  const std::string count = std::to_string(run.nodes);
  return run.by_place ? "place " + number + " of " + count + " in the cluster file"
                      : "--shard " + number + '/' + count + " (or a node of --join)";
}

}  // namespace

std::string to_json(const RunState& state) {
  json adapter = state.adapter.own;
  adapter["clock"] = state.adapter.clock;
  json position = state.position;
  if (state.position.cursor) position["cursor"] = *state.position.cursor;
  if (state.position.passed_over != 0) position["passed_over"] = state.position.passed_over;
  return json{{"identity", state.identity}, {"position", position}, {"adapter", adapter}}.dump();
}

RunState run_state_from_json(const std::string& text) {
  const json all = json::parse(text);
  require_counts(json::parse(to_json(RunState{})), all);
  RunState state;
  all.at("identity").get_to(state.identity);
  const json& position = all.at("position");
  position.get_to(state.position);
  if (position.contains("cursor")) state.position.cursor = count_in(position, "cursor");
  if (position.contains("passed_over"))
    state.position.passed_over = count_in(position, "passed_over");
  const json& adapter = all.at("adapter");
  adapter.at("clock").get_to(state.adapter.clock);
  for (const auto& [name, value] : adapter.items()) {
    if (name != "clock") state.adapter.own[name] = count_in(adapter, name);
  }
  return state;
}

void require_same_run(const RunIdentity& checkpoint, const RunIdentity& here) {
  const auto same = [](const char* what, const json& there, const json& own) {
    if (there == own) return;
    throw ConfigError(std::string("--resume: the checkpoint has ") + what + " " + there.dump() +
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
  if (here.shares_data) return;
  const std::string there = part_of(checkpoint);
  if (const std::string own = part_of(here); there != own)
    throw ConfigError("--resume: the checkpoint is of " + there + ", this run of " + own +
                      "; accepted: the same, as samples and their order follow from it");
}

RunPosition carried_over(const RunState& checkpoint, const RunIdentity& here) {
  RunPosition position = checkpoint.position;
  if (here.shares_data && !position.cursor) {
    position.cursor = position.of_stream() * checkpoint.identity.nodes;
    position.passed_over = 0;
  } else if (!here.shares_data && position.cursor) {
    position.samples = shard(*position.cursor, here.nodes, here.rank).count;
    position.cursor.reset();
  }
  return position;
}

}  // namespace dpwa::train
