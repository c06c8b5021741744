#include "python/core/trainer.h"

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "dpwa/config/open_log.h"
#include "dpwa/log/log.h"

namespace dpwa::python {

Trainer::Trainer(const Config& config, std::vector<TensorSpec> tensors)
    : config_(config), manifest_(std::move(tensors)), process_(::getpid()) {
  if (!log_is_open()) open_log(config).use();
}

bool Trainer::is_forked() const {
  return ::getpid() != process_;
}

void Trainer::require_own_process() const {
  if (is_forked())
    throw std::logic_error(
        "this process was forked from the one that is the node: only that one may use it");
}

}  // namespace dpwa::python
