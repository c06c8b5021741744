#include "python/core/optimizer_words.h"

#include <stdexcept>

namespace dpwa::python {
namespace {

using kvstore::OptimizerOptions;

const std::map<std::string, double OptimizerOptions::*> numbers{
    {"learning_rate", &OptimizerOptions::learning_rate},
    {"rescale", &OptimizerOptions::rescale},
    {"weight_decay", &OptimizerOptions::weight_decay},
    {"momentum", &OptimizerOptions::momentum},
    {"dampening", &OptimizerOptions::dampening},
    {"beta1", &OptimizerOptions::beta1},
    {"beta2", &OptimizerOptions::beta2},
    {"alpha", &OptimizerOptions::alpha},
    {"epsilon", &OptimizerOptions::epsilon},
    {"rate_decay", &OptimizerOptions::rate_decay},
    {"accumulator", &OptimizerOptions::accumulator}};
const std::map<std::string, bool OptimizerOptions::*> switches{
    {"amsgrad", &OptimizerOptions::amsgrad}, {"centered", &OptimizerOptions::centered}};

kvstore::OptimizerKind kind_named(const std::string& name) {
  try {
    return kvstore::optimizer_kind(name);
  } catch (const std::invalid_argument& unknown) {
    throw kvstore::UnknownOptimizer(unknown.what());
  }
}

std::string accepted() {
  std::string names;
  for (const auto& [name, member] : numbers) names += name + ", ";
  for (const auto& [name, member] : switches) names += name + ", ";
  return names.substr(0, names.size() - 2);
}

}  // namespace

kvstore::OptimizerOptions options_named(const OptimizerWords& words) {
  const auto& [kind, values] = words;
  OptimizerOptions options = kvstore::default_options(kind_named(kind));
  for (const auto& [name, value] : values) {
    if (const auto number = numbers.find(name); number != numbers.end()) {
      options.*number->second = value;
    } else if (const auto found = switches.find(name); found != switches.end()) {
      options.*found->second = value != 0;
    } else {
      throw KVStoreError("an optimizer has no '" + name + "'; accepted: " + accepted());
    }
  }
  if (const auto problem = kvstore::options_problem(options)) throw KVStoreError(*problem);
  return options;
}

}  // namespace dpwa::python
