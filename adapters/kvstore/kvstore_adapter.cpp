#include "adapters/kvstore/kvstore_adapter.h"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <stdexcept>
#include <unordered_set>

#include "adapters/backend.h"
#include "adapters/common/module_tensors.h"
#include "adapters/kvstore/local_adapter.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/settings.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/text.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

// The key of the record of the run. The key of a parameter has no parentheses.
constexpr auto run_key = "(run)";

// kvstore.update: auto. From there on a step has tens of milliseconds of bookkeeping where each
// parameter is a key that the servers update. Only what servers update is in their snapshots.
constexpr std::size_t max_keys_by_servers = 1000;

bool updates_on_servers(const KvstoreConfig& store, std::size_t parameters) {
  if (store.update != KvstoreUpdate::automatic) return store.update == KvstoreUpdate::server;
  return parameters <= max_keys_by_servers || !merges(store.type, store.staleness) ||
         !store.snapshots.folder.empty();
}

// What workers that do not step together must have in common: all else may differ.
bool is_data(const std::string& setting) {
  return setting == "data" || setting == "--data";
}
bool is_of_data(const std::string& setting) {
  return is_data(setting) || setting == "--split" || setting == "--seed";
}

}  // namespace

KvstoreAdapter::KvstoreAdapter(const Config& config, torch::nn::Module& model)
    : config_(config), flat_(model), buffers_(model), place_(place_in_file(config)) {
  std::unordered_set<const void*> seen;
  for (const auto& [name, parameter] : parameters_of(model)) {
    if (!parameter.defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    if (parameter.requires_grad()) {
      trained_.push_back(parameters_.size());
      trained_parameters_.push_back(parameter);
    }
    parameters_.emplace_back(name, parameter);
    written_.add(parameter);
  }
  by_servers_ = updates_on_servers(config.kvstore, trained_.size());
  used_.resize(trained_.size());
  fired_.resize(trained_.size());
}

KvstoreAdapter::~KvstoreAdapter() {
  leave();
}

void KvstoreAdapter::require_same(const std::string& what, const std::string& value) {
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
  if (bytes > kvstore::max_run_settings_bytes)
    throw std::length_error("the settings of require_same() have " + std::to_string(bytes) +
                            " bytes; accepted: at most " +
                            std::to_string(kvstore::max_run_settings_bytes));
}

void KvstoreAdapter::start() {
  flat_.check();
  const std::uint64_t incarnation = wall_clock_us();
  endpoint_ = std::make_unique<Endpoint>(config_, incarnation);
  LocalProcess& local = endpoint_->local();
  endpoint_->start(config_.kvstore.start_wait);
  // From here on the servers may take this worker in: a signal ends a wait, and the catch below
  // tells them that it leaves.
  const stop_signal::Deferral deferral;
  session_ = std::make_unique<kvstore::WorkerSession>(config_, incarnation, local.security);
  session_->note_waits_in(local.notes);
  phase_ = Phase::running;
  try {
    step_ = session_->join();
    agree();
    make_weights();
    if (!by_servers()) {
      make_gradients();
      make_note();
      session_->on_look([this] { look_for_newcomers(); });
    }
    step_ = session_->first_step();
    const kvstore::ExchangeReport pulled =
        by_servers() ? take_weights(step_) : take_from_workers(/*has_own=*/false);
    if (pulled.stopped) throw std::runtime_error("node '" + config_.self + "' was told to stop");
    if (pulled.left_out) rejoin();
    buffers_.take();
    begin_at(step_);
    places_restored_ =
        restored_ && by_servers() && step_ == 0 && place_.rank == 0 && weights_->untouched();
    has_weights_ = true;
    dropped_ = false;
    report_ = {};
    // Nobody may look at a signal that was not to be deferred.
    if (deferral.is_first() && stop_signal::received() != 0)
      throw std::runtime_error("node '" + config_.self + "' was told to stop");
  } catch (...) {
    leave();
    throw;
  }
  hooks_ = std::make_unique<BackwardHooks>(
      trained_parameters_, [this](std::size_t i) { fired(i); }, [] {});
  local.state = wire::NodeState::ready;
  log(LogLevel::info, "kvstore",
      "takes part from step " + std::to_string(step_) + " on, with " +
          config::joined(session_->client().workers()));
  if (!by_servers() && config_.kvstore.update == KvstoreUpdate::automatic) {
    log(LogLevel::info, "kvstore",
        "kvstore.update: auto is worker here, because the model has " +
            std::to_string(trained_.size()) + " trained tensors");
  }
  tell_status({}, {});
}

void KvstoreAdapter::restore(const ResumeState& state) {
  clock_ = state.clock;
  restored_ = true;
}

// Compares the models before the keys are made: a worker with another model must not change the
// keys of the run, and the others would wait for those that it does not push.
void KvstoreAdapter::agree() {
  record_.clock = clock_;
  if (!merged())
    std::erase_if(record_.settings, [](const auto& each) { return !is_of_data(each.first); });
  std::unordered_set<std::size_t> trained(trained_.begin(), trained_.end());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    const kvstore::ValueSpec spec = kvstore::spec_of(parameter, "key '" + name + "'");
    // The others would wait for the gradients of what is frozen here.
    const bool frozen = config_.kvstore.type != KvstoreType::dist_async && !trained.contains(i);
    record_.keys.push_back({name, spec.text() + (frozen ? " frozen" : ""), spec.elements()});
  }
  for (const auto& [name, spec] : buffers_.keys())
    record_.keys.push_back({name, spec.text(), spec.elements()});
  const std::vector<double> own = encode(record_);
  const kvclient::Ticket init = session_->client().init(run_key, kvstore::run_record_spec(),
                                                        std::as_bytes(std::span(own)), false);
  session_->wait_created(init, run_key);
  const kvstore::RunOfOthers run = read_run();
  compare(run);
  clock_at_begin_ = run.clock;
}

kvstore::RunOfOthers KvstoreAdapter::read_run() {
  while (true) {
    kvstore::ExchangeReport report;
    const kvclient::Outcome outcome =
        answer_to(session_->client().pull(run_key, 0), "the settings of the run", report);
    if (report.stopped) throw std::runtime_error("node '" + config_.self + "' was told to stop");
    if (report.left_out) {
      session_->join();
      continue;
    }
    std::vector<double> values(kvstore::run_record_elements);
    const kvstore::SharedBytes& bytes = outcome.values.at(0);
    if (bytes->size() != values.size() * sizeof(double))
      throw std::logic_error("a record of the run of another size");
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return kvstore::decode_run(values);
  }
}

void KvstoreAdapter::compare(const kvstore::RunOfOthers& run) const {
  for (const SettingDifference& setting : differences(record_.settings, run.settings)) {
    const std::string words = setting.words(on_node(config_.self), "in the run");
    if (!merged()) {
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

void KvstoreAdapter::make_weights() {
  weights_ = std::make_unique<kvstore::StepExchange>(*session_,
                                                     config_.kvstore.type == KvstoreType::dist_async
                                                         ? kvstore::StepExchange::Values::with_push
                                                         : kvstore::StepExchange::Values::by_pull);
  for (const auto& [name, parameter] : parameters_) {
    weights_->add(name, parameter, /*compresses=*/by_servers());
    outs_.push_back(parameter);
  }
  buffers_.add_to(*weights_);
  for (const at::Tensor& value : buffers_.outs()) outs_.push_back(value);
  weights_->wait_created();
}

void KvstoreAdapter::make_gradients() {
  kvstore::SharedGradients::Parameters trained;
  for (const std::size_t each : trained_) trained.push_back(parameters_[each]);
  gradients_ = std::make_unique<kvstore::SharedGradients>(
      *session_, std::move(trained), by_servers() ? "average_gradients() or update_send()" : "");
}

// Takes the weights that have all pushes of steps below `clock`.
kvstore::ExchangeReport KvstoreAdapter::take_weights(std::uint64_t clock) {
  weights_->pull_all();
  kvstore::ExchangeReport pulled = weights_->finish(outs_);
  if (clock > 0 && pulled.complete()) {
    weights_->pull_updated(clock);
    pulled.add(weights_->finish(outs_));
  }
  written_.know();
  return pulled;
}

// The weights are those of this step.
void KvstoreAdapter::begin_at(std::uint64_t step) {
  step_ = step;
  clock_ = clock_at_begin_ + static_cast<double>(step);
  session_->client().at(step_, /*waiting=*/false);
  traffic_before_ = session_->client().traffic();
  written_.know();
  in_backward_.clear();
  update_place();
}

void KvstoreAdapter::update_place() {
  const std::vector<std::string> workers = session_->client().workers();
  const auto self = std::ranges::find(workers, config_.self);
  seen_.insert(config_.self);
  if (step_ > 0) seen_.insert(workers.begin(), workers.end());  // before, some may yet be refused
  if (self == workers.end()) return;                            // about to be told
  place_ = {static_cast<std::size_t>(self - workers.begin()), workers.size()};
}

// Between two steps: the model is as it was, and its weights are those of the servers, whose values
// would replace others.
void KvstoreAdapter::check_model() const {
  flat_.check();
  const auto written = written_.first();
  if (!by_servers() || !written) return;
  throw std::logic_error("the model's tensor '" + parameters_[*written].first +
                         "' was written by the program; with kvstore.update 'server' the servers "
                         "have the weights; accepted: kvstore.update 'worker'");
}

void KvstoreAdapter::check_step() const {
  check_model();
  if (!averaged_) in_backward_.check();
}

void KvstoreAdapter::reload(const Config& fresh) {
  reload_log(fresh, Backend::kvstore);
  if (endpoint_) endpoint_->reload_security();  // the connections to the servers use the same files
}

void KvstoreAdapter::set_batch_size(std::uint64_t samples) {
  samples_ = static_cast<double>(samples);
}

Accumulation KvstoreAdapter::accumulate() {
  if (!is_running()) return {};
  accumulating_ = true;
  return Accumulation([this] { accumulating_ = false; });
}

// Notes the participants: workers that have made a step and were not lost on the way.
void KvstoreAdapter::note_participants() {
  std::set<std::string> names;
  for (const std::string& name : session_->client().left()) names.insert(name);
  for (const kvstore::WorkerEntry& worker : session_->client().members()) {
    if (worker.first_step < step_) names.insert(worker.id.name);
  }
  if (has_counted_) names.insert(config_.self);
  finished_.participants = names.size();
  const bool of_others = names.size() > (names.contains(config_.self) ? 1 : 0);
  // The weights are of a run that had ended, at servers that were started again since: they do not
  // know the workers.
  const bool of_former_run = names.empty() && step_ > 0 && config_.nodes.size() > 1;
  finished_.averaged = of_others || of_former_run;
  finished_.enough = std::max<std::size_t>(1, names.size()) >= config_.gossip.min_nodes;
}

// From now on the others do not wait for this worker. The final weights are pulled once all are
// done, so they include the last pushes of the others. Throws std::runtime_error with the reason
// when they cannot be had.
void KvstoreAdapter::take_final_weights() {
  finishing_ = true;
  if (endpoint_) endpoint_->local().state = wire::NodeState::finished;
  told_ = {};
  tell_status(last_report_, {});
  session_->give_up_without_servers();
  const auto fail = [this] {
    const std::string problems = session_->problems();
    throw std::runtime_error(problems.empty() ? "told to stop, or left out" : problems);
  };
  // This one makes no more steps, and does not hang.
  session_->client().at(step_, /*waiting=*/true);
  session_->finish();
  kvstore::ExchangeReport taken;
  do {
    const bool at_end = session_->wait_end();
    note_participants();
    if (!at_end) fail();
    weights_->pull_all();
    taken = weights_->finish(outs_);
  } while (taken.left_out && !taken.stopped);
  if (taken.stopped) fail();
  buffers_.take();
}

void KvstoreAdapter::lose_final_model(const std::string& why) {
  finished_ = {};
  finished_.lost_final_model = true;
  finished_.enough = config_.gossip.min_nodes <= 1;
  const bool stopped = stop_signal::received() != 0;
  log(stopped ? LogLevel::info : LogLevel::error, "kvstore",
      (stopped ? "told to stop before all workers were done"
               : "the servers do not give the final model of all workers (" + why + ")") +
          ": the model of this node is that of its last step");
}

FinishReport KvstoreAdapter::finish() {
  if (phase_ != Phase::running) {
    leave();
    return finished_;
  }
  check_model();
  const stop_signal::Deferral deferral;  // so that it leaves, and is not lost
  update_place();
  note_participants();
  try {
    if (by_servers() && seen_.size() > 1) take_final_weights();
    const std::size_t count = finished_.participants;
    const std::string of_workers = std::to_string(count) + (count == 1 ? " worker" : " workers");
    log(LogLevel::info, "kvstore",
        count > 0            ? "final model of " + of_workers
        : finished_.averaged ? "final model of the run before the servers were started again"
                             : "no worker has made a step: the model is as it began");
  } catch (const std::runtime_error& refused) {
    lose_final_model(refused.what());
  }
  leave();
  return finished_;
}

void KvstoreAdapter::leave() {
  hooks_.reset();
  if (session_) session_->leave();
  session_.reset();
  if (endpoint_) {
    endpoint_->local().state = wire::NodeState::finished;
    endpoint_->stop();
  }
  if (phase_ == Phase::running) phase_ = Phase::left;
}

std::unique_ptr<Adapter> make_kvstore(const Config& config, torch::nn::Module& model) {
  require_backend(config);
  if (is_local(config.kvstore.type)) return std::make_unique<LocalKvstoreAdapter>(config, model);
  if (!config.join.empty() || config.self_added)
    throw ConfigError(config.file.string() + ": '" + config.self +
                      "' joins, which backend kvstore does not offer; accepted: a node of the "
                      "file, which may come at any time");
  return std::make_unique<KvstoreAdapter>(config, model);
}

}  // namespace dpwa
