#include "dpwa/kvworker/run_agreement.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/settings.h"
#include "dpwa/config/text.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {
namespace {

// The key of the record of the run. The key of a parameter has no parentheses.
constexpr auto run_key = "(run)";

// What workers that do not step together must have in common: all else may differ.
bool is_data(const std::string& setting) {
  return setting == "data" || setting == "--data";
}
bool is_of_data(const std::string& setting) {
  return is_data(setting) || setting == "--split" || setting == "--seed";
}

}  // namespace

RunAgreement::RunAgreement(const Config& config)
    : config_(config), merged_(merges(config.kvstore.type, config.kvstore.staleness)) {}

void RunAgreement::require_same(const std::string& what, const std::string& value) {
  Settings& settings = record_.settings;
  const std::string name = to_plain_text(what, what.size());
  const std::string shown = to_plain_text(value, value.size());
  const auto same = std::ranges::find(settings, name, &Settings::value_type::first);
  if (same == settings.end()) {
    settings.emplace_back(name, shown);
  } else {
    same->second += ", " + shown;
  }
  std::size_t bytes = 0;
  for (const auto& [each, text] : settings) bytes += each.size() + text.size() + 3;
  if (bytes > max_run_settings_bytes)
    throw std::length_error("the settings of require_same() have " + std::to_string(bytes) +
                            " bytes; accepted: at most " + std::to_string(max_run_settings_bytes));
}

void RunAgreement::name_keys(const WorkerModel& model) {
  const std::set<std::size_t> trained(model.trained().begin(), model.trained().end());
  for (std::size_t i = 0; i < model.values().size(); ++i) {
    const auto& [name, spec, is_buffers] = model.values()[i];
    // The others would wait for the gradients of what is frozen here.
    const bool frozen =
        !is_buffers && config_.kvstore.type != KvstoreType::dist_async && !trained.contains(i);
    record_.keys.push_back({name, spec.text() + (frozen ? " frozen" : ""), spec.elements()});
  }
}

double RunAgreement::agree(WorkerSession& session, const WorkerModel& model, double clock) {
  record_.clock = clock;
  if (!merged_)
    std::erase_if(record_.settings, [](const auto& each) { return !is_of_data(each.first); });
  name_keys(model);
  const std::vector<double> own = encode(record_);
  const kvclient::Ticket init =
      session.client().init(run_key, run_record_spec(), std::as_bytes(std::span(own)), false);
  session.wait_created(init, run_key);
  const RunOfOthers run = read(session);
  compare(run);
  return run.clock;
}

RunOfOthers RunAgreement::read(WorkerSession& session) const {
  while (true) {
    ExchangeReport report;
    const kvclient::Outcome outcome =
        answer_to(session, session.client().pull(run_key, 0), "the settings of the run", report);
    if (report.stopped) throw std::runtime_error("node '" + config_.self + "' was told to stop");
    if (report.left_out) {
      session.join();
      continue;
    }
    std::vector<double> values(run_record_elements);
    const SharedBytes& bytes = outcome.values.at(0);
    if (bytes->size() != values.size() * sizeof(double))
      throw std::logic_error("a record of the run of another size");
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return decode_run(values);
  }
}

void RunAgreement::compare(const RunOfOthers& run) const {
  for (const SettingDifference& setting : differences(record_.settings, run.settings)) {
    const std::string words = setting.words(on_node(config_.self), "in the run");
    if (!merged_) {
      log(LogLevel::warn, "kvstore",
          words + (is_data(setting.name) ? "; its model is trained on both"
                                         : "; workers may share samples, and some be left unused"));
      continue;
    }
    throw std::runtime_error(words +
                             "; accepted: the same on all nodes, and as before where the servers "
                             "continue from a snapshot");
  }
  if (const auto other = other_model(record_, run))
    throw std::runtime_error("node '" + config_.self + "' has " + *other +
                             "; accepted: the same keys, shapes and types on all nodes");
}

}  // namespace dpwa::kvstore
