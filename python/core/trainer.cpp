#include "python/core/trainer.h"

#include <unistd.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/names.h"
#include "dpwa/config/open_log.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/log/log.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/mark.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::python {

struct Trainer::Parts {
  Config config;
  unsigned threads = 1;
  Manifest manifest;
  std::map<std::string, std::string> settings;  // require_same()
  std::shared_ptr<MemoryFile> shared;           // with a node process
  AlignedBuffer memory;
  std::optional<HostParameters> parameters;
  std::unique_ptr<GossipSession> session;  // from start() on; null with backend null
  std::optional<GossipState> restored;
  GossipState alone;  // of backend null
  bool running = false;

  void make_session() {
    for (const auto& [what, value] : settings)
      manifest = with_mark(manifest, setting_mark(what, value));
    if (config.backend == Backend::null) return;
    if (shared) {
      session = std::make_unique<attach::AttachedGossip>(config, manifest, shared, threads);
    } else {
      parameters.emplace(manifest, memory.bytes(), threads);
      session = std::make_unique<Gossip>(config, *parameters);
    }
    if (restored) session->restore(*restored);
  }
};

Trainer::Trainer(const Config& config, std::vector<TensorSpec> tensors, unsigned threads)
    : process_(::getpid()), parts_(std::make_unique<Parts>()) {
  if (config.backend != Backend::gossip && config.backend != Backend::null)
    fail_at_key(config, "backend",
                "'" + std::string(config::name_in(config::backend_words, config.backend)) +
                    "' is not in the Python package; accepted there: gossip, null");
  parts_->config = config;
  parts_->threads = threads;
  parts_->manifest = Manifest(std::move(tensors));
  const std::size_t bytes = parts_->manifest.total_bytes();
  if (config.backend == Backend::gossip && config.gossip.daemon) {
    parts_->shared = attach::allocate_parameters(bytes);
    parts_->memory =
        AlignedBuffer(std::shared_ptr<std::byte>(parts_->shared, parts_->shared->data()), bytes);
  } else {
    parts_->memory = AlignedBuffer(bytes);
  }
  if (!log_is_open()) open_log(config).use();
}

Trainer::~Trainer() {
  if (::getpid() != process_) static_cast<void>(parts_.release());
}

Trainer::Parts& Trainer::own() const {
  if (::getpid() != process_)
    throw std::logic_error(
        "this process was forked from the one that is the node: only that one may use it");
  return *parts_;
}

std::span<std::byte> Trainer::memory() const {
  return parts_->memory.bytes();
}

const Manifest& Trainer::manifest() const {
  return parts_->manifest;
}

void Trainer::mark(const std::string& what, const std::string& value) {
  own().manifest = with_mark(own().manifest, {what, value});
}

void Trainer::require_same(const std::string& what, const std::string& value) {
  const auto [setting, is_new] = own().settings.emplace(what, value);
  if (!is_new) setting->second += ", " + value;
}

void Trainer::restore(const GossipState& state) {
  own().restored = state;
  own().alone = state;
}

void Trainer::start() {
  own().make_session();
  if (own().session) own().session->start();
  own().running = true;
}

void Trainer::update_send(double loss) {
  if (own().session && own().running) own().session->update_send([loss] { return loss; });
}

StepReport Trainer::update_wait(std::optional<double> loss) {
  if (own().session && own().running) {
    if (!loss) return own().session->update_wait();
    return own().session->update_wait([value = *loss] { return value; });
  }
  if (own().running) ++own().alone.clock;
  StepReport report;
  report.clock = resume_state().clock;
  return report;
}

GossipState Trainer::resume_state() const {
  return own().session ? own().session->resume_state() : own().alone;
}

void Trainer::reload(const Config& fresh) {
  if (own().session) own().session->reload(fresh);
}

FinishReport Trainer::finish() {
  own().running = false;
  return own().session ? own().session->finish() : FinishReport();
}

void Trainer::leave() {
  own().running = false;
  if (own().session) own().session->leave();
}

}  // namespace dpwa::python
