#include "dpwa/kvworker/weight_transfer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "dpwa/log/log.h"

namespace dpwa::kvstore {
namespace {

using Steady = std::chrono::steady_clock;

// The key of the note. The key of a parameter has no parentheses.
constexpr auto note_key = "(handover)";

KeyState without_optimizer() {
  return {default_options(OptimizerKind::sgd), {}};
}

std::string words_for_step(double clock) {
  return "step " + std::to_string(std::llround(clock));
}

}  // namespace

WeightTransfer::WeightTransfer(const Parts& parts) : parts_(parts) {
  const NoteValues none{};
  const ValueSpec spec{DType::float64, {note_elements}};
  const kvclient::Ticket init =
      parts_.session.client().init(note_key, spec, std::as_bytes(std::span(none)), false);
  parts_.session.wait_created(init, note_key);
}

MemberId WeightTransfer::self() const {
  return {parts_.config.self, parts_.session.client().incarnation()};
}

TransferNote WeightTransfer::read_note(ExchangeReport& report) {
  const kvclient::Outcome outcome =
      answer_to(parts_.session, parts_.session.client().pull(note_key, 0),
                "the note about the weights", report);
  NoteValues values{};
  if (outcome.values.size() != 1 || !outcome.values[0] ||
      outcome.values[0]->size() != sizeof values)
    return {};
  std::memcpy(values.data(), outcome.values[0]->data(), sizeof values);
  return decode_note(values).value_or(TransferNote{});
}

void WeightTransfer::write_note(TransferNote::Kind kind, std::uint64_t step, std::uint64_t giver,
                                ExchangeReport& report) {
  const NoteValues values = encode(TransferNote{kind, step, giver});
  const KeyShape shape{note_key, DType::float64, note_elements,
                       static_cast<std::uint32_t>(parts_.config.kvstore.servers.size())};
  parts_.states.wait_placed(
      {parts_.states.place(shape, without_optimizer(), std::as_bytes(std::span(values)))}, report);
}

void WeightTransfer::give_if_asked(std::uint64_t step, const KnownOptimizer& optimizer) {
  ExchangeReport report;
  const TransferNote note = read_note(report);
  const bool known_soon = !optimizer.is_settled() && note.step > step;
  if (known_soon || !is_asked(self(), step, note)) return;
  try {
    give(step, optimizer.content(), report);
  } catch (const std::runtime_error& refused) {
    log(LogLevel::warn, "kvstore",
        std::string("cannot give its weights to a joining worker: ") + refused.what());
    write_note(TransferNote::Kind::refused, step, self().incarnation, report);
  }
}

void WeightTransfer::give(std::uint64_t step, const OptimizerContent& optimizer,
                          ExchangeReport& report) {
  WorkerModel& model = parts_.model;
  const OptimizerTerms terms = optimizer.terms();
  write_note(TransferNote::Kind::writing, step, self().incarnation, report);
  std::vector<kvclient::Ticket> tickets;
  for (std::size_t i = 0, trained = 0; i < model.parameters(); ++i) {
    std::optional<KeyState> state;
    if (trained < model.trained().size() && model.trained()[trained] == i) {
      state = optimizer.key_state(terms, trained, parts_.used[trained]);
      ++trained;
    }
    const Lent value = model.value(i);
    tickets.push_back(parts_.states.place(parts_.states.shape_of(i),
                                          state.value_or(without_optimizer()), value.bytes));
  }
  parts_.states.wait_placed(tickets, report);
  if (report.complete()) write_note(TransferNote::Kind::given, step, self().incarnation, report);
  if (report.complete())
    log(LogLevel::info, "kvstore",
        "gave the weights of step " + std::to_string(step) +
            " and the optimizer's state to a joining worker");
}

std::vector<Slices> WeightTransfer::pull_values(ExchangeReport& report) {
  std::vector<Slices> values(parts_.model.values().size());
  parts_.weights.pull_all();
  report.add(parts_.weights.finish(
      [&values](std::size_t index, const Slices& slices) { values[index] = slices; }));
  return values;
}

void WeightTransfer::take_values(const std::vector<Slices>& values) {
  parts_.model.begin_writes();
  for (std::size_t i = 0; i < values.size(); ++i) parts_.model.write(i, values[i]);
  parts_.model.end_writes();
}

// Takes the weights of the first step. False: the optimizer of this worker does not have the state
// that belongs to them, because they are of another checkpoint than its own; or not all has come.
bool WeightTransfer::take_begin(const Own& own, ExchangeReport& report) {
  if (own.clock != own.clock_at_begin) return false;
  if (!own.restored) {
    parts_.weights.pull_all();
    report.add(parts_.weights.finish(parts_.model));
    return report.complete();
  }
  const auto values = pull_values(report);
  for (std::size_t i = 0; report.complete() && i < parts_.model.parameters(); ++i) {
    if (!equal(values[i], parts_.model.value(i).bytes)) return false;
  }
  if (report.complete()) take_values(values);
  return report.complete();
}

// What the note names; false: it was written anew meanwhile, or not all has come.
bool WeightTransfer::take_given(const TransferNote& note, ExchangeReport& report) {
  const auto values = pull_values(report);
  if (!report.complete()) return false;
  auto states = parts_.states.read(report);
  if (read_note(report) != note || !report.complete()) return false;
  take_values(values);
  given_ = std::move(states);
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const bool has_steps = given_[i] && given_[i]->state.steps() > 0;
    parts_.used[i] = parts_.used[i] || has_steps;
  }
  return true;
}

ExchangeReport WeightTransfer::take(const Own& own, std::uint64_t& step) {
  const TimePoint began = Steady::now();
  ExchangeReport report;
  Newcomer newcomer{self(), 0, own.has_weights, false, {}};
  std::string begin;  // of a run with another checkpoint than that of this worker
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(
        "node '" + parts_.config.self + "' comes " + begin + "to a run at " +
        words_for_step(own.clock_at_begin + static_cast<double>(newcomer.next_step)) + ", and " +
        why + (begin.empty() ? "" : ", or checkpoints of one step on all workers"));
  };
  while (true) {
    newcomer.next_step = parts_.gradients.next_step(report);
    const TransferNote note = read_note(report);
    if (!report.complete()) return report;
    if (newcomer.next_step == 0 && begin.empty()) {  // the run begins
      const bool taken = take_begin(own, report);
      if (taken) step = 0;
      if (taken || !report.complete()) return report;
      begin = own.restored ? "with a checkpoint of " + words_for_step(own.clock) + " "
                           : "without a checkpoint ";
      log(LogLevel::info, "kvstore",
          "comes " + begin + "to a run that begins at " + words_for_step(own.clock_at_begin) +
              ": takes weights and optimizer's state from another worker");
    }
    newcomer.hear(note);
    const TransferMove move = next_move(newcomer, parts_.session.client().members(), note);
    switch (move.kind) {
      case TransferMove::Kind::take:
        if (take_given(note, report)) {
          step = note.step;
          return report;
        }
        if (!report.complete()) return report;
        break;
      case TransferMove::Kind::ask:
        newcomer.asked = true;
        write_note(TransferNote::Kind::wanted, newcomer.next_step, move.giver, report);
        break;
      case TransferMove::Kind::keep:
        log(LogLevel::warn, "kvstore",
            "no other worker has the weights of step " + std::to_string(newcomer.next_step) +
                ": continues with its own, of step " + std::to_string(step));
        step = newcomer.next_step;
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
        write_note(TransferNote::Kind::lacks, newcomer.next_step, self().incarnation, report);
        break;
      case TransferMove::Kind::wait:
        break;
    }
    report.stopped |= !parts_.session.pause(began, "the weights of another worker");
    if (!report.complete()) return report;
    if (Steady::now() - began >= parts_.config.kvstore.start_wait)
      fail("no worker has given its weights within kvstore.start_wait_ms");
  }
}

void WeightTransfer::give_to(WorkerOptimizer& optimizer) {
  if (given_.empty()) return;
  parts_.states.give_to(optimizer, given_, parts_.config.self);
  given_.clear();
}

}  // namespace dpwa::kvstore
