// CollectiveAdapter: how it ends.
#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <utility>

#include "adapters/collective/collective_adapter.h"
#include "adapters/collective/engine/operations.h"
#include "adapters/collective/gathering.h"
#include "dpwa/log/log.h"

namespace dpwa {

FinishReport CollectiveAdapter::finish() {
  if (phase_ == Phase::running) flat_.check();
  if (phase_ == Phase::running && !apart_) run_out();
  if (phase_ == Phase::running && apart_) {
    finished_ = gossip_->finish();
  } else if (phase_ == Phase::running) {
    const int size = group_session_->group().size();
    finished_.averaged = size > 1;
    finished_.participants = static_cast<std::size_t>(size);
    finished_.enough = finished_.participants >= config_.gossip.min_nodes;
    log(LogLevel::info, "collective",
        "final model of " + std::to_string(size) + (size == 1 ? " node" : " nodes"));
  }
  leave();
  return finished_;
}

// Continues without batches until no member has one. Then all take the model of a member that was
// at work last, and leave together.
void CollectiveAdapter::run_out() {
  while (phase_ == Phase::running && !apart_) {
    reducer_->contribute(/*joined=*/true);
    const auto result = reducer_->end_step();
    std::optional<CollectiveError> error = result->error;
    if (!error) {
      const collective::StepTally tally = *result->tally;
      require_equal_weights(tally);
      if (tally.first_stopping >= 0) {
        const std::string who = group_session_->name_of(tally.first_stopping);
        leave();
        throw std::runtime_error("node '" + config_.self + "' ends because '" + who +
                                 "' was told to stop");
      }
      if (tally.first_at_work >= 0) {
        uneven_ = true;
        last_at_work_ = tally.first_at_work;
      }
      if (tally.joined < group_session_->group().size()) {
        tally_ = tally;
        compare(nullptr);  // those that still step compare theirs
        between_steps();
        continue;
      }
      try {
        take_final_model();
        return;
      } catch (const CollectiveError& lost) {
        error = lost;
      }
    }
    if (config_.collective.on_lost_rank == OnLostRank::stop || !may_go_on(*error)) give_up(*error);
    drop_group();
    regroup();
  }
}

void CollectiveAdapter::take_final_model() {
  const at::NoGradGuard no_grad;
  group_session_->watch().begin_wait("the model of the last node at work");
  collective::Operations operations(group_session_->group());
  if (uneven_) operations.broadcast({"the model", flat_.memory()}, last_at_work_);
  if (config_.collective.on_lost_rank != OnLostRank::stop) operations.barrier();
  group_session_->watch().end_wait();
  group_session_->note_left();
  reducer_.reset();
  group_session_->group().leave(collective::leave_limit);
}

void CollectiveAdapter::leave() {
  reducer_.reset();
  if (group_session_) {
    const bool all_leave = config_.collective.on_lost_rank == OnLostRank::stop ||
                           (group_session_->together() && group_session_->group().aborted());
    if (all_leave) {
      group_session_->note_left();
    } else {
      group_session_->leave();
    }
    // All leave after the same step, and one may still be receiving from this node.
    if (stopping_ && group_session_->together() && !group_session_->group().broken())
      group_session_->group().leave(collective::leave_limit);
    group_session_.reset();
  }
  if (gossip_) gossip_->leave();
  if (endpoint_) {
    endpoint_->local().state = wire::NodeState::finished;
    endpoint_->stop();
  }
  if (phase_ == Phase::running) phase_ = Phase::left;
}

}  // namespace dpwa
