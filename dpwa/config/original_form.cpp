#include "dpwa/config/original_form.h"

#include <algorithm>

#include "dpwa/config/field.h"
#include "dpwa/config/keys.h"
#include "interpolation/registry.h"

namespace dpwa::config {
namespace {

// The original writes the scalar 0 for "no parameters".
InterpolationParameters read_method_parameters(const std::string& method, const Field& field) {
  if (field.is_scalar() && field.text() == "0") return {};
  return read_parameters(method, Section(field, "a map of its parameters, or 0 for none"));
}

void read_interpolation_keys(const Section& root, Config& config) {
  InterpolationConfig& interpolation = config.interpolation;
  const Field* selected = root.find("interpolation");
  const bool is_map = selected && !selected->is_scalar();
  const auto refuse_beside_map = [&](const Field& field) {
    if (is_map) field.fail("given beside interpolation as a map; accepted: inside that map");
  };
  if (selected && !is_map) key_at("interpolation.method").read(*selected, config);
  if (const Field* field = root.find("divergence_threshold")) {
    refuse_beside_map(*field);
    key_at("interpolation.divergence_threshold").read(*field, config);
  }
  for (const std::string& method : interpolation_registry().names()) {
    const Field* field = root.find(method);
    if (!field) continue;
    refuse_beside_map(*field);
    const InterpolationParameters parameters = read_method_parameters(method, *field);
    if (method == interpolation.method) interpolation.parameters = parameters;
  }
}

void refuse_twice(const Section& root, const std::string& key,
                  const std::vector<std::string>& same) {
  const Field* here = root.find(key);
  const Field* gossip = root.find("gossip");
  if (!here) return;
  for (const std::string& name : same) {
    const bool top_level = name != key && root.has(name);
    if (top_level || (gossip && gossip->node().IsMap() && Section(*gossip).has(name))) {
      here->fail("the same as '" + std::string(top_level ? "" : "gossip.") + name +
                 "', which is given too; accepted: one of them");
    }
  }
}

}  // namespace

std::vector<std::string> original_keys() {
  std::vector<std::string> keys = {"fetch_probability", "pull_probability", "timeout_ms",
                                   "divergence_threshold"};
  for (const std::string& method : interpolation_registry().names()) keys.push_back(method);
  return keys;
}

std::string original_form_by(bool is_list, const Section& root) {
  if (is_list) return "it is a list";
  const Field* interpolation = root.find("interpolation");
  if (interpolation && interpolation->is_scalar())
    return "interpolation is a name; {method: NAME} is of the own form";
  const std::vector<std::string> keys = original_keys();
  const auto found = std::ranges::find_if(keys, [&](const auto& key) { return root.has(key); });
  return found == keys.end() ? "" : *found + " stands at the top level";
}

void set_original_defaults(GossipConfig& gossip) {
  gossip.blend = BlendMode::lerp;
  gossip.max_staleness = 0;
  gossip.final_average = false;
}

void read_original(const Section& root, Config& config) {
  const std::vector<std::string> probability = {"fetch_probability", "pull_probability"};
  for (const std::string& key : probability) {
    refuse_twice(root, key, probability);
    if (const Field* field = root.find(key)) key_at("gossip.pull_probability").read(*field, config);
  }
  refuse_twice(root, "timeout_ms", {"timeout_ms"});
  if (const Field* field = root.find("timeout_ms"))
    key_at("gossip.timeout_ms").read(*field, config);
  read_interpolation_keys(root, config);
}

void finish_original(const Section& root, GossipConfig& gossip) {
  const Field* section = root.find("gossip");
  if (!section || !Section(*section).has("step_budget_ms")) gossip.step_budget = gossip.timeout;
}

}  // namespace dpwa::config
