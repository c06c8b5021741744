// KvstoreAdapter: the state of the optimizer, where others need it. With update: worker, that of
// workers that come later; with update: server, that of checkpoints.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <torch/optim/optimizer.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "adapters/common/tensor_bytes.h"
#include "adapters/kvstore/kvstore_adapter.h"
#include "adapters/kvstore/torch_states.h"
#include "adapters/kvstore/torch_values.h"
#include "dpwa/log/log.h"

namespace dpwa {
namespace {

using Steady = std::chrono::steady_clock;
using kvclient::Ticket;
using kvstore::ExchangeReport;
using kvstore::KeyState;
using kvstore::TransferMove;
using kvstore::TransferNote;

// The key of the note. The key of a parameter has no parentheses.
constexpr auto note_key = "(handover)";

KeyState without_optimizer() {
  return {kvstore::default_options(kvstore::OptimizerKind::sgd), {}};
}

bool is_empty(const kvstore::OptimizerState& state) {
  return state.steps() == 0;
}

}  // namespace

kvstore::KeyShape KvstoreAdapter::shape_of(std::size_t parameter) const {
  const auto& [name, tensor] = parameters_[parameter];
  return {name, *to_dtype(tensor.scalar_type()), static_cast<std::uint64_t>(tensor.numel()),
          static_cast<std::uint32_t>(config_.kvstore.servers.size())};
}

// Without content when told to stop, or left out. Throws std::runtime_error when a server refuses.
kvclient::Outcome KvstoreAdapter::answer_to(Ticket ticket, const std::string& what,
                                            ExchangeReport& report) {
  if (auto outcome = session_->wait(ticket, what)) {
    if (is_error(outcome->kind)) throw std::runtime_error(outcome->problem);
    report.left_out |= outcome->left_out;
    return *std::move(outcome);
  }
  report.stopped = true;
  return {};
}

void KvstoreAdapter::wait_placed(const std::vector<Ticket>& tickets, ExchangeReport& report) {
  for (const Ticket ticket : tickets)
    answer_to(ticket, "the servers to take the optimizer's state", report);
}

// By index of trained_; none: no update yet.
std::vector<std::optional<KeyState>> KvstoreAdapter::states_of_servers(ExchangeReport& report) {
  std::vector<Ticket> tickets;
  for (const std::size_t each : trained_)
    tickets.push_back(session_->client().ask_states(parameters_[each].first));
  std::vector<std::optional<KeyState>> states;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const kvclient::Outcome outcome = answer_to(tickets[i], "the optimizer's state", report);
    states.push_back(whole_of(shape_of(trained_[i]), outcome.states));
  }
  return states;
}

// --- update: worker: of workers that come later, or back, or with another checkpoint

void KvstoreAdapter::make_note() {
  const kvstore::NoteValues none{};
  const kvstore::ValueSpec spec{DType::float64, {kvstore::note_elements}};
  const Ticket init =
      session_->client().init(note_key, spec, std::as_bytes(std::span(none)), false);
  session_->wait_created(init, note_key);
}

TransferNote KvstoreAdapter::read_note(ExchangeReport& report) {
  const kvclient::Outcome outcome =
      answer_to(session_->client().pull(note_key, 0), "the note about the weights", report);
  kvstore::NoteValues values{};
  if (outcome.values.size() != 1 || !outcome.values[0] ||
      outcome.values[0]->size() != sizeof values)
    return {};
  std::memcpy(values.data(), outcome.values[0]->data(), sizeof values);
  return kvstore::decode_note(values).value_or(TransferNote{});
}

void KvstoreAdapter::write_note(const TransferNote& note, ExchangeReport& report) {
  const kvstore::NoteValues values = kvstore::encode(note);
  const kvstore::KeyShape shape{note_key, DType::float64, kvstore::note_elements,
                                static_cast<std::uint32_t>(config_.kvstore.servers.size())};
  auto messages = messages_of(shape, without_optimizer(), std::as_bytes(std::span(values)));
  wait_placed({session_->client().place_states(note_key, std::move(messages))}, report);
}

// This worker waits for others: perhaps for one that has no weights.
void KvstoreAdapter::look_for_newcomers() {
  if (by_servers() || phase_ != Phase::running || !has_weights_ || dropped_) return;
  const bool unknown = stepping_ == nullptr && !last_optimizer_ && !by_halves_;
  if (unknown && !averaged_) return;  // known soon
  ExchangeReport report;
  const TransferNote note = read_note(report);
  if (!is_asked(self(), step_, note) || (unknown && note.step > step_)) return;
  try {
    give_weights(report);
  } catch (const std::runtime_error& refused) {
    log(LogLevel::warn, "kvstore",
        std::string("cannot give its weights to a joining worker: ") + refused.what());
    write_note({TransferNote::Kind::refused, step_, self().incarnation}, report);
  }
}

// The weights that this step begins with: the optimizer has not made it yet.
void KvstoreAdapter::give_weights(ExchangeReport& report) {
  if (by_halves_)
    throw std::runtime_error("update_send() does not tell the optimizer; accepted: step()");
  if (several_optimizers_)
    throw std::runtime_error(
        "several optimizers make its steps, and a step has the state of one; accepted: one "
        "optimizer, with groups of parameters");
  if (stepping_ != nullptr) last_optimizer_.emplace(*stepping_, trained_parameters_);
  if (!last_optimizer_)
    throw std::runtime_error(
        "average_gradients() in the first step does not tell the optimizer; accepted: "
        "set_optimizer() before it");
  const kvstore::OptimizerCopy& optimizer = *last_optimizer_;
  write_note({TransferNote::Kind::writing, step_, self().incarnation}, report);
  std::vector<Ticket> tickets;
  for (std::size_t i = 0, trained = 0; i < parameters_.size(); ++i) {
    std::optional<KeyState> state;
    if (trained < trained_.size() && trained_[trained] == i) {
      state = optimizer.state(trained, used_[trained]);
      ++trained;
    }
    const at::Tensor value = kvstore::dense_on(parameters_[i].second, at::kCPU);
    tickets.push_back(session_->client().place_states(
        parameters_[i].first,
        messages_of(shape_of(i), state.value_or(without_optimizer()), const_bytes_of(value))));
  }
  wait_placed(tickets, report);
  if (report.complete()) write_note({TransferNote::Kind::given, step_, self().incarnation}, report);
  if (report.complete())
    log(LogLevel::info, "kvstore",
        "gave the weights of step " + std::to_string(step_) +
            " and the optimizer's state to a joining worker");
}

std::vector<at::Tensor> KvstoreAdapter::pull_values(ExchangeReport& report) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  for (const at::Tensor& out : outs_) values.push_back(at::empty_like(out.detach()));
  weights_->pull_all();
  report.add(weights_->finish(values));
  return values;
}

void KvstoreAdapter::take_values(const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < outs_.size(); ++i) outs_[i].detach().copy_(values[i]);
}

// Takes the weights of the first step. False: the optimizer of this worker does not have the state
// that belongs to them, because they are of another checkpoint than its own; or not all has come.
bool KvstoreAdapter::take_begin(ExchangeReport& report) {
  if (clock_ != clock_at_begin_) return false;
  if (restored_) {
    const auto values = pull_values(report);
    bool same = report.complete();
    for (std::size_t i = 0; same && i < parameters_.size(); ++i)
      same = at::equal(parameters_[i].second.detach(), values[i]);
    if (!same) return false;
    take_values(values);
  } else {
    weights_->pull_all();
    report.add(weights_->finish(outs_));
  }
  step_ = 0;
  return report.complete();
}

// What the note names; false: it was written anew meanwhile, or not all has come.
bool KvstoreAdapter::take_given(const TransferNote& note, ExchangeReport& report) {
  const auto values = pull_values(report);
  if (!report.complete()) return false;
  auto states = states_of_servers(report);
  if (read_note(report) != note || !report.complete()) return false;
  take_values(values);
  given_ = std::move(states);
  for (std::size_t i = 0; i < trained_.size(); ++i)
    used_[i] = used_[i] || (given_[i] && !is_empty(given_[i]->state));
  step_ = note.step;
  return true;
}

// Weights and optimizer's state as the other workers have them. Throws std::runtime_error when no
// worker gives them. The optimizer gets its part in give_to().
ExchangeReport KvstoreAdapter::take_from_workers(bool has_own) {
  const TimePoint began = Steady::now();
  ExchangeReport report;
  kvstore::Newcomer newcomer{self(), 0, has_own, false, {}};
  std::string begin;  // of a run with another checkpoint than that of this worker
  const auto at_step = [](double clock) { return "step " + std::to_string(std::llround(clock)); };
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error("node '" + config_.self + "' comes " + begin + "to a run at " +
                             at_step(clock_at_begin_ + static_cast<double>(newcomer.next_step)) +
                             ", and " + why +
                             (begin.empty() ? "" : ", or checkpoints of one step on all workers"));
  };
  while (true) {
    newcomer.next_step = gradients_->next_step(report);
    const TransferNote note = read_note(report);
    if (!report.complete()) return report;
    if (newcomer.next_step == 0 && begin.empty()) {  // the run begins
      if (take_begin(report) || !report.complete()) return report;
      begin = restored_ ? "with a checkpoint of " + at_step(clock_) + " " : "without a checkpoint ";
      log(LogLevel::info, "kvstore",
          "comes " + begin + "to a run that begins at " + at_step(clock_at_begin_) +
              ": takes weights and optimizer's state from another worker");
    }
    newcomer.hear(note);
    const TransferMove move = next_move(newcomer, session_->client().members(), note);
    switch (move.kind) {
      case TransferMove::Kind::take:
        if (take_given(note, report) || !report.complete()) return report;
        break;
      case TransferMove::Kind::ask:
        newcomer.asked = true;
        write_note({TransferNote::Kind::wanted, newcomer.next_step, move.giver}, report);
        break;
      case TransferMove::Kind::keep:
        log(LogLevel::warn, "kvstore",
            "no other worker has the weights of step " + std::to_string(newcomer.next_step) +
                ": continues with its own, of step " + std::to_string(step_));
        step_ = newcomer.next_step;
        return report;
      case TransferMove::Kind::nobody:
        fail(
            "no worker that has its weights takes part: with kvstore.update 'worker' the servers "
            "have none; accepted: new servers, or update: server");
        break;
      case TransferMove::Kind::refused:
        fail(
            "the worker that has its weights cannot give them (its log says why); accepted: "
            "update: server");
        break;
      case TransferMove::Kind::decline:
        write_note({TransferNote::Kind::lacks, newcomer.next_step, self().incarnation}, report);
        break;
      case TransferMove::Kind::wait:
        break;
    }
    report.stopped |= !session_->pause(began, "the weights of another worker");
    if (!report.complete()) return report;
    if (Steady::now() - began >= config_.kvstore.start_wait)
      fail("no worker has given its weights within kvstore.start_wait_ms");
  }
}

// What was taken from another worker.
void KvstoreAdapter::give_to(torch::optim::Optimizer& optimizer) {
  if (given_.empty()) return;
  const kvstore::OptimizerTerms terms(optimizer, trained_parameters_);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const kvstore::Bytes* form = terms.of(i);
    if (form == nullptr || !given_[i]) continue;
    const auto own = kvstore::decode_options(*form);
    const KeyState& given = *given_[i];
    const kvstore::KeyShape shape = shape_of(trained_[i]);
    if (own->kind != given.options.kind ||
        given.state.bytes().size() !=
            kvstore::OptimizerState::bytes_of(*own, shape.dtype, shape.elements)) {
      throw std::runtime_error("node '" + config_.self + "' has the optimizer " +
                               std::string(name_of(own->kind)) + ", and the run " +
                               std::string(name_of(given.options.kind)) +
                               ", or other options of it; accepted: the same on all nodes");
    }
    give_state(optimizer, trained_parameters_[i], *own, given.state);
  }
  given_.clear();
}

// --- update: server: of checkpoints

bool KvstoreAdapter::take_optimizer_state(torch::optim::Optimizer& optimizer) {
  // In halves the servers only add up what the optimizer of the program has made.
  if (!by_servers() || by_halves_ || phase_ == Phase::made) return true;
  const kvstore::OptimizerTerms terms(optimizer, trained_parameters_);
  std::string why = "told to stop, or left out";
  try {
    ExchangeReport report;
    const auto states = phase_ == Phase::running ? states_of_servers(report)
                                                 : std::vector<std::optional<KeyState>>();
    if (!states.empty() && report.complete()) {
      for (std::size_t i = 0; i < trained_.size(); ++i) {
        const kvstore::Bytes* form = terms.of(i);
        if (form == nullptr) continue;
        const auto own = kvstore::decode_options(*form);
        const auto& of_servers = states[i];
        const auto same = of_servers && of_servers->options.kind == own->kind;
        give_state(optimizer, trained_parameters_[i], same ? of_servers->options : *own,
                   same ? of_servers->state : kvstore::OptimizerState());
      }
      return true;
    }
  } catch (const std::runtime_error& refused) {
    why = refused.what();
  }
  optimizer.state().clear();
  log(LogLevel::warn, "kvstore", "cannot fetch the optimizer's state from the servers: " + why);
  return false;
}

// Gives the state of a checkpoint to servers that are new. Called by the worker whose weights
// count.
void KvstoreAdapter::place_restored(const torch::optim::Optimizer& optimizer) {
  bool has_any = false;
  bool needs_any = false;
  std::vector<Ticket> tickets;
  const kvstore::OptimizerCopy copy(optimizer, trained_parameters_);
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    const auto state = copy.state(i, used_[i]);
    if (!state || state->options.kind == kvstore::OptimizerKind::sgd) continue;
    needs_any = true;
    if (is_empty(state->state)) continue;
    has_any = true;
    tickets.push_back(session_->client().place_states(
        parameters_[trained_[i]].first, messages_of(shape_of(trained_[i]), *state, {})));
  }
  if (needs_any && !has_any) {
    log(LogLevel::warn, "kvstore",
        "the servers are new and the checkpoint has no state of the optimizer: it begins empty");
  }
  ExchangeReport report;
  wait_placed(tickets, report);
  if (report.complete() && has_any)
    log(LogLevel::info, "kvstore", "the servers are new: they got the optimizer's state");
}

}  // namespace dpwa
