#pragma once

#include <string>

#include "dpwa/config/config.h"
#include "dpwa/kvstore/run_record.h"
#include "dpwa/kvworker/step_exchange.h"
#include "dpwa/kvworker/worker_model.h"

namespace dpwa::kvstore {

// Compares what the programs of all workers of a run have to have in common: their settings and
// their models (dpwa/kvstore/run_record.h). Training thread.
class RunAgreement {
 public:
  explicit RunAgreement(const Config& config);

  // Throws std::length_error beyond max_run_settings_bytes.
  void require_same(const std::string& what, const std::string& value);
  // To be called before the keys of the model are made: a worker with another model must not change
  // those of the run, and the others would wait for those that it does not push. `clock`: of this
  // worker, at step 0. Returns that of the run. Throws std::runtime_error that names what differs.
  double agree(WorkerSession& session, const WorkerModel& model, double clock);

 private:
  void name_keys(const WorkerModel& model);
  RunOfOthers read(WorkerSession& session) const;
  void compare(const RunOfOthers& run) const;

  const Config& config_;
  const bool merged_;
  RunRecord record_;
};

}  // namespace dpwa::kvstore
