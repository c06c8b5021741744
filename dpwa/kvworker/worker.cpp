#include "dpwa/kvworker/worker.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "dpwa/base/stop_signal.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/text.h"
#include "dpwa/log/events.h"
#include "dpwa/log/log.h"

namespace dpwa::kvstore {
namespace {

// kvstore.update: auto. From there on a step has tens of milliseconds of bookkeeping where each
// parameter is a key that the servers update. Only what servers update is in their snapshots.
constexpr std::size_t max_keys_by_servers = 1000;

bool decides_servers(const KvstoreConfig& store, std::size_t parameters) {
  if (store.update != KvstoreUpdate::automatic) return store.update == KvstoreUpdate::server;
  return parameters <= max_keys_by_servers || !merges(store.type, store.staleness) ||
         !store.snapshots.folder.empty();
}

}  // namespace

Worker::Worker(const Config& config, WorkerModel& model)
    : config_(config),
      model_(model),
      by_servers_(decides_servers(config.kvstore, model.trained().size())),
      used_(model.trained().size()),
      agreement_(config_),
      place_(place_in_file(config)) {
  now_.fired.resize(model.trained().size());
}

Worker::~Worker() {
  leave();
}

void Worker::start() {
  model_.check();
  const std::uint64_t incarnation = wall_clock_us();
  endpoint_ = std::make_unique<Endpoint>(config_, incarnation);
  LocalProcess& local = endpoint_->local();
  endpoint_->start(config_.kvstore.start_wait);
  // From here on the servers may take this worker in: a signal ends a wait, and the catch below
  // tells them that it leaves.
  const stop_signal::Deferral deferral;
  open_session(std::make_unique<WorkerSession>(config_, incarnation, local.security));
  session_->note_waits_in(local.notes);
  phase_ = Phase::running;
  try {
    step_ = session_->join();
    clock_at_begin_ = agreement_.agree(*session_, model_, clock_);
    make_weights();
    states_ = std::make_unique<StoreStates>(*session_, model_, config_.kvstore.servers.size());
    if (!by_servers_) {
      make_gradients();
      transfer_ = std::make_unique<WeightTransfer>(WeightTransfer::Parts{
          config_, *session_, model_, used_, *states_, *weights_, *gradients_});
      session_->on_look([this] { look_for_newcomers(); });
    }
    step_ = session_->first_step();
    const ExchangeReport pulled = by_servers_ ? take_weights(step_) : take_from_workers();
    if (pulled.stopped) throw std::runtime_error("node '" + config_.self + "' was told to stop");
    if (pulled.left_out) rejoin();
    begin_at(step_);
    places_restored_ =
        restored_ && by_servers_ && step_ == 0 && place_.rank == 0 && weights_->untouched();
    has_weights_ = true;
    now_.dropped = false;
    now_.report = {};
    // Nobody may look at a signal that was not to be deferred.
    if (deferral.is_first() && stop_signal::received() != 0)
      throw std::runtime_error("node '" + config_.self + "' was told to stop");
  } catch (...) {
    leave();
    throw;
  }
  local.state = wire::NodeState::ready;
  log_event(EventKind::admitted, LogLevel::info, "kvstore",
            "takes part from step " + std::to_string(step_) + " on, with " +
                config::joined(session_->client().workers()));
  if (!by_servers_ && config_.kvstore.update == KvstoreUpdate::automatic) {
    log(LogLevel::info, "kvstore",
        "kvstore.update: auto is worker here, because the model has " +
            std::to_string(model_.trained().size()) + " trained tensors");
  }
  tell_status({}, {});
}

void Worker::restore(const ResumeState& state) {
  clock_ = state.clock;
  restored_ = true;
}

void Worker::make_weights() {
  weights_ = std::make_unique<StepExchange>(
      *session_, config_.kvstore.type == KvstoreType::dist_async ? StepExchange::Values::with_push
                                                                 : StepExchange::Values::by_pull);
  for (std::size_t i = 0; i < model_.values().size(); ++i) {
    const WorkerModel::Value& value = model_.values()[i];
    weights_->add(value, model_.value(i), /*compresses=*/by_servers_ && !value.is_buffers);
  }
  weights_->wait_created();
}

void Worker::make_gradients() {
  gradients_ = std::make_unique<SharedGradients>(
      *session_, model_, by_servers_ ? "average_gradients() or update_send()" : "");
}

// What break_off() may call is there from then on, until the next call.
void Worker::open_session(std::unique_ptr<WorkerSession> session) {
  {
    const MutexLock lock(mutex_);
    std::swap(session_, session);
    if (session_ && broken_off_) session_->break_off();
  }
  session.reset();  // ends connections
}

void Worker::break_off() {
  const MutexLock lock(mutex_);
  broken_off_ = true;
  if (session_) session_->break_off();
}

// Takes the weights that have all pushes of steps below `clock`.
ExchangeReport Worker::take_weights(std::uint64_t clock) {
  weights_->pull_all();
  ExchangeReport pulled = weights_->finish(model_);
  if (clock > 0 && pulled.complete()) {
    weights_->pull_updated(clock);
    pulled.add(weights_->finish(model_));
  }
  model_.know_written();
  return pulled;
}

ExchangeReport Worker::take_from_workers() {
  return transfer_->take({clock_, clock_at_begin_, restored_, has_weights_}, step_);
}

// In a wait for others.
void Worker::look_for_newcomers() {
  if (!is_running() || !has_weights_ || now_.dropped) return;
  if (optimizer_.is_settled() || now_.stage == Stage::exchanged)
    transfer_->give_if_asked(step_, optimizer_);
}

// The weights are those of this step.
void Worker::begin_at(std::uint64_t step) {
  step_ = step;
  clock_ = clock_at_begin_ + static_cast<double>(step);
  session_->client().at(step_, /*waiting=*/false);
  now_.traffic_before = session_->client().traffic();
  model_.know_written();
  model_.forget_sent();
  update_place();
}

void Worker::update_place() {
  const std::vector<std::string> workers = session_->client().workers();
  const auto self = std::ranges::find(workers, config_.self);
  std::set<std::string>& seen = totals_.seen;
  seen.insert(config_.self);
  if (step_ > 0) seen.insert(workers.begin(), workers.end());  // before, some may yet be refused
  if (self == workers.end()) return;                           // about to be told
  place_ = {static_cast<std::size_t>(self - workers.begin()), workers.size()};
}

// Between two steps: the model is as it was, and its weights are those of the servers, whose values
// would replace others.
void Worker::check_model() const {
  model_.check();
  const auto written = model_.written();
  if (!by_servers_ || !written) return;
  throw std::logic_error("the model's tensor '" + model_.values()[*written].name +
                         "' was written by the program; with kvstore.update 'server' the servers "
                         "have the weights; accepted: kvstore.update 'worker'");
}

void Worker::check_step() const {
  check_model();
  if (now_.stage != Stage::exchanged) model_.check_sent();
}

void Worker::show(const std::string& name, double value) {
  if (endpoint_) endpoint_->local().shown.set(name, value);
}

void Worker::reload(const Config& fresh) {
  reload_log(fresh, Backend::kvstore);
  if (endpoint_) endpoint_->reload_security();  // the connections to the servers use the same files
}

// Notes the participants: workers that have made a step and were not lost on the way.
void Worker::note_participants() {
  std::set<std::string> names;
  for (const std::string& name : session_->client().left()) names.insert(name);
  for (const WorkerEntry& worker : session_->client().members()) {
    if (worker.first_step < step_) names.insert(worker.id.name);
  }
  if (totals_.has_counted) names.insert(config_.self);
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
void Worker::take_final_weights() {
  phase_ = Phase::finishing;
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
  ExchangeReport taken;
  do {
    const bool at_end = session_->wait_end();
    note_participants();
    if (!at_end) fail();
    weights_->pull_all();
    taken = weights_->finish(model_);
  } while (taken.left_out && !taken.stopped);
  if (taken.stopped) fail();
}

void Worker::lose_final_model(const std::string& why) {
  finished_ = {};
  finished_.lost_final_model = true;
  finished_.enough = config_.gossip.min_nodes <= 1;
  const bool stopped = session_->told_to_stop();
  log(stopped ? LogLevel::info : LogLevel::error, "kvstore",
      (stopped ? "told to stop before all workers were done"
               : "the servers do not give the final model of all workers (" + why + ")") +
          ": the model of this node is that of its last step");
}

FinishReport Worker::finish() {
  if (phase_ != Phase::running) {
    leave();
    return finished_;
  }
  check_model();
  const stop_signal::Deferral deferral;  // so that it leaves, and is not lost
  update_place();
  note_participants();
  try {
    if (by_servers_ && totals_.seen.size() > 1) take_final_weights();
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

void Worker::leave() {
  if (session_) session_->leave();
  open_session(nullptr);
  if (endpoint_) {
    endpoint_->local().state = wire::NodeState::finished;
    endpoint_->stop();
  }
  if (phase_ != Phase::made) phase_ = Phase::left;
}

bool Worker::take_optimizer_state(WorkerOptimizer& optimizer) {
  // In halves the servers only add up what the optimizer of the program has made.
  if (!by_servers_ || optimizer_.steps_by_halves() || phase_ == Phase::made) return true;
  const OptimizerTerms terms = optimizer.terms();
  std::string why = "told to stop, or left out";
  try {
    if (is_running() && states_->fetch_into(optimizer, terms)) return true;
  } catch (const std::runtime_error& refused) {
    why = refused.what();
  }
  optimizer.forget();
  log(LogLevel::warn, "kvstore", "cannot fetch the optimizer's state from the servers: " + why);
  return false;
}

}  // namespace dpwa::kvstore
