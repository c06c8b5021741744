#include "python/core/kvstore_trainer.h"

#include <cmath>
#include <utility>

#include "dpwa/log/log.h"
#include "python/core/device_parameters.h"

namespace dpwa::python {
namespace {

// What the package has of the back end.
const Config& checked(const Config& config) {
  if (!config.join.empty() || config.self_added)
    fail_at_key(config, "backend",
                "'" + config.self +
                    "' joins, which kvstore does not offer; accepted: a node of the file, which "
                    "may come at any time");
  return config;
}

}  // namespace

KvstoreTrainer::KvstoreTrainer(const Config& config, std::vector<TensorSpec> tensors,
                               const std::vector<bool>& trained, nanobind::handle passes)
    : Trainer(checked(config), std::move(tensors)) {
  memory_ = AlignedBuffer(manifest_.total_bytes());
  if (passes && !lock_pages_for(passes, memory_))
    log(LogLevel::warn, "kvstore",
        "the device cannot lock host memory: copies to and from it are slower");
  own_ = std::make_unique<Own>(config_, manifest_, memory(), trained);
}

KvstoreTrainer::~KvstoreTrainer() {
  if (is_forked()) static_cast<void>(own_.release());
}

kvstore::HostModel& KvstoreTrainer::model() {
  require_own_process();
  return own_->model;
}

kvstore::Worker& KvstoreTrainer::worker() {
  require_own_process();
  return own_->worker;
}

Place KvstoreTrainer::place() const {
  require_own_process();
  return own_->worker.place();
}

StepReport KvstoreTrainer::update_wait(std::optional<double> loss) {
  return worker().update_wait([loss] { return loss.value_or(std::nan("")); });
}

ResumeState KvstoreTrainer::resume_state() const {
  require_own_process();
  return own_->worker.resume_state();
}

}  // namespace dpwa::python
