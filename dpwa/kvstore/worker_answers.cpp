// What the answers of servers change in a worker's requests, and the epochs that end its run.

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "dpwa/base/incarnation.h"
#include "dpwa/kvstore/slices.h"
#include "dpwa/kvstore/worker_engine.h"

namespace dpwa::kvstore {

WorkerEngine::Failed WorkerEngine::failed(const Request& request, Answer& answer) {
  Failed event{RequestKind::init, answer.slice, 0, answer.kind, std::move(answer.problem)};
  if (const auto* push = std::get_if<Push>(&request.content)) {
    event.request = RequestKind::push;
    event.clock = push->step;
  } else if (const auto* pull = std::get_if<Pull>(&request.content)) {
    event.request = RequestKind::pull;
    event.clock = pull->clock;
  } else if (std::holds_alternative<StateMessage>(request.content)) {
    event.request = RequestKind::state;
  }
  return event;
}

void WorkerEngine::refused(Answer& answer) {
  const std::uint64_t own = epochs_.self().incarnation;
  const bool of_former = answer.kind == AnswerKind::name_taken && answer.step != 0;
  if (of_former && answer.step <= own) return;  // it has taken a later number since
  const auto number =
      of_former ? incarnation_after(std::max(answer.step, answer.version), own) : std::nullopt;
  if (!number) {
    events_.push_back(Refused{answer.kind, std::move(answer.problem)});
    return;
  }
  if (takes_part_) {
    takes_part_ = joins_ = false;
    end_part(0);
  }
  // What waits to be sent is that of the former number.
  outgoing_.clear();
  epochs_.take();
  epochs_.renumber(*number);
  beaten_ = TimePoint::min();
  events_.push_back(Renumbered{*number});
}

void WorkerEngine::answered(std::uint64_t tag, Answer& answer) {
  const auto found = requests_.find(tag);
  if (found == requests_.end()) return;
  if (slice_of(found->second) != answer.slice) return;
  // The value of a slice without elements has no bytes that could travel.
  const bool unchanged = answer.kind == AnswerKind::unchanged;
  if (!answer.values && !unchanged && bytes_of(answer.slice) == 0U)
    answer.values = std::make_shared<Bytes>();
  if (is_error(answer.kind)) {
    events_.push_back(failed(found->second, answer));
    erase(found);
    return;
  }
  switch (answer.kind) {
    case AnswerKind::other_epoch:
    case AnswerKind::not_primary:
    case AnswerKind::not_member:
      return;  // is sent again with the next epoch, or after a while
    case AnswerKind::created:
      if (!std::holds_alternative<Init>(found->second.content)) return;
      events_.push_back(Created{answer.slice, answer.step});
      erase(found);
      return;
    case AnswerKind::value:
    case AnswerKind::unchanged:
      return pull_answered(found, answer);
    default:
      if (const auto* state = std::get_if<StateMessage>(&found->second.content)) {
        events_.push_back(Stated{*state});
        return erase(found);
      }
      return push_answered(found, answer);
  }
}

// This worker has heard of its epoch before the server has. The server now gets the epoch from it,
// and the request after that. Once: a server that does not take the epoch up would refuse it again.
void WorkerEngine::refused_by_old_epoch(const MemberId& from, std::uint64_t tag,
                                        const Answer& answer) {
  const std::uint64_t own = epochs_.installed().number;
  const auto found = requests_.find(tag);
  if (answer.epoch >= own || found == requests_.end()) return;
  Request& request = found->second;
  if (request.state != State::sent || request.server != from.name || request.again == own) return;
  request.again = own;
  change(tag, request, State::queued);
}

void WorkerEngine::state_given(std::uint64_t tag, StateMessage& state) {
  const auto found = requests_.find(tag);
  if (found == requests_.end() || state.kind != StateMessage::Kind::give) return;
  const auto* asked = std::get_if<StateMessage>(&found->second.content);
  if (asked == nullptr || asked->slice != state.slice) return;
  erase(found);
  events_.push_back(Stated{std::move(state)});
}

void WorkerEngine::push_answered(Requests::iterator request, Answer& answer) {
  const Push* push = std::get_if<Push>(&request->second.content);
  if (push == nullptr) return;
  const bool not_finite = answer.kind == AnswerKind::not_finite;
  if (answer.kind == AnswerKind::received || (not_finite && options_.merged)) {
    // A new primary has to receive the push again, or it would wait for this worker.
    const bool first = request->second.state != State::received;
    change(request->first, request->second, State::received);
    if (not_finite) request->second.so_far = AnswerKind::not_finite;
    if (not_finite && first && push->wants_value) confirm(push->slice, push->step + 1);
    return;
  }
  events_.push_back(
      Pushed{answer.slice, push->step, answer.kind, answer.version, std::move(answer.values)});
  erase(request);
}

void WorkerEngine::pull_answered(Requests::iterator request, Answer& answer) {
  const Pull* pull = std::get_if<Pull>(&request->second.content);
  if (pull == nullptr) return;
  const std::uint64_t clock = pull->clock;
  if (!request->second.confirms) {
    events_.push_back(
        Pulled{answer.slice, clock, answer.version, std::move(answer.values), answer.step});
  }
  const std::vector<std::uint64_t> line = request->second.slice->line;
  erase(request);
  if (!options_.merged) return;
  // All steps below the clock of the pull are acknowledged, even if the answer to the push has not
  // arrived.
  for (const std::uint64_t tag : line) {
    const auto found = requests_.find(tag);
    const Push* push =
        found == requests_.end() ? nullptr : std::get_if<Push>(&found->second.content);
    if (push == nullptr || push->step >= clock) continue;
    events_.push_back(
        Pushed{push->slice, push->step, found->second.so_far, answer.version, nullptr});
    erase(found);
  }
}

bool WorkerEngine::is_over(const Answer& answer) const {
  const Epoch& own = epochs_.installed();
  return answer.kind == AnswerKind::run_over && own.number > 0 && own.run == answer.version &&
         own.number <= answer.step && !keys_.empty();
}

void WorkerEngine::end_run(std::string problem) {
  over_ = true;
  takes_part_ = false;
  events_.push_back(RunOver{std::move(problem)});
}

// The servers that were started again and have lost the values of this worker's keys.
std::optional<std::vector<std::string>> WorkerEngine::lost_servers(const Epoch& epoch) const {
  const Epoch& own = epochs_.installed();
  if (own.number == 0 || epoch.number <= own.number || epoch.run == own.run ||
      epoch.from.number != 0 || keys_.empty() || !epochs_.fits(epoch))
    return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < own.servers.size(); ++at) {
    const ServerEntry& server = epoch.servers[at];
    if (server.state == ServerState::up && server.id != own.servers[at].id)
      names.push_back(server.id.name);
  }
  return names;
}

}  // namespace dpwa::kvstore
