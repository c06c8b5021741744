#include "dpwa/kvworker/store_states.h"

#include <stdexcept>

#include "dpwa/log/log.h"

namespace dpwa::kvstore {

KeyShape StoreStates::shape_of(std::size_t value) const {
  const auto& [name, spec, is_buffers] = model_.values()[value];
  return {name, spec.dtype, spec.elements(), servers_};
}

std::vector<std::optional<KeyState>> StoreStates::read(ExchangeReport& report) {
  std::vector<kvclient::Ticket> tickets;
  for (const std::size_t each : model_.trained())
    tickets.push_back(session_.client().ask_states(model_.values()[each].name));
  std::vector<std::optional<KeyState>> states;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const kvclient::Outcome outcome =
        answer_to(session_, tickets[i], "the optimizer's state", report);
    states.push_back(whole_of(shape_of(model_.trained()[i]), outcome.states));
  }
  return states;
}

void StoreStates::give_to(WorkerOptimizer& optimizer,
                          const std::vector<std::optional<KeyState>>& states,
                          const std::string& self) const {
  const OptimizerTerms terms = optimizer.terms();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Bytes* form = terms.of(i);
    if (form == nullptr || !states[i]) continue;
    const auto own = decode_options(*form);
    const KeyState& given = *states[i];
    const KeyShape shape = shape_of(model_.trained()[i]);
    if (own->kind != given.options.kind ||
        given.state.bytes().size() != OptimizerState::bytes_of(*own, shape.dtype, shape.elements)) {
      throw std::runtime_error("node '" + self + "' has the optimizer " +
                               std::string(name_of(own->kind)) + ", and the run " +
                               std::string(name_of(given.options.kind)) +
                               ", or other options of it; accepted: the same on all nodes");
    }
    optimizer.give(i, *own, given.state);
  }
}

kvclient::Ticket StoreStates::place(const KeyShape& shape, const KeyState& state,
                                    std::span<const std::byte> value) {
  return session_.client().place_states(shape.key, messages_of(shape, state, value));
}

void StoreStates::wait_placed(const std::vector<kvclient::Ticket>& tickets,
                              ExchangeReport& report) {
  for (const kvclient::Ticket ticket : tickets)
    answer_to(session_, ticket, "the servers to take the optimizer's state", report);
}

bool StoreStates::fetch_into(WorkerOptimizer& optimizer, const OptimizerTerms& terms) {
  ExchangeReport report;
  const auto states = read(report);
  if (!report.complete()) return false;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Bytes* form = terms.of(i);
    if (form == nullptr) continue;
    const auto own = decode_options(*form);
    if (states[i] && states[i]->options.kind == own->kind) {
      optimizer.give(i, states[i]->options, states[i]->state);
    } else {
      const KeyShape shape = shape_of(model_.trained()[i]);  // the servers have not updated it
      optimizer.give(i, *own, OptimizerState(*own, shape.dtype, shape.elements));
    }
  }
  return true;
}

void StoreStates::place_restored(const OptimizerContent& optimizer, const std::vector<bool>& used) {
  bool needs_any = false;
  std::vector<kvclient::Ticket> tickets;
  const OptimizerTerms terms = optimizer.terms();
  for (std::size_t i = 0; i < model_.trained().size(); ++i) {
    const auto state = optimizer.key_state(terms, i, used[i]);
    if (!state || state->options.kind == OptimizerKind::sgd) continue;
    needs_any = true;
    if (state->state.steps() > 0)
      tickets.push_back(place(shape_of(model_.trained()[i]), *state, {}));
  }
  const bool has_any = !tickets.empty();
  if (needs_any && !has_any) {
    log(LogLevel::warn, "kvstore",
        "the servers are new and the checkpoint has no state of the optimizer: it begins empty");
  }
  ExchangeReport report;
  wait_placed(tickets, report);
  if (report.complete() && has_any)
    log(LogLevel::info, "kvstore", "the servers are new: they got the optimizer's state");
}

}  // namespace dpwa::kvstore
