#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/snapshot/mark.h"
#include "dpwa/snapshot/memory_file.h"
#include "python/core/device_parameters.h"
#include "python/core/trainer.h"

namespace dpwa::python {
namespace {

constexpr auto lineage = "lineage";
constexpr auto incarnation = "incarnation";

// What the package has of the types local_*: gradients as they are, and the program's optimizer.
const Config& checked(const Config& config) {
  const bool compresses = config.kvstore.compression.type != kvstore::Compression::none;
  if (config.backend == Backend::kvstore && compresses)
    fail_at_key(config, "kvstore.compression.type",
                "of a type local_* is not in the Python package; accepted there: none");
  return config;
}

class GossipTrainer final : public Trainer {
 public:
  GossipTrainer(const Config& config, std::vector<TensorSpec> tensors, unsigned threads,
                nanobind::handle passes)
      : Trainer(checked(config), std::move(tensors)),
        threads_(threads),
        keeps_passes_(nanobind::borrow(passes)) {
    const std::size_t bytes = manifest_.total_bytes();
    if (passes) {
      passes_.emplace(program(), passes);
    } else if (config.backend == Backend::gossip && config.gossip.daemon) {
      shared_ = attach::allocate_parameters(bytes);
      memory_ = AlignedBuffer(std::shared_ptr<std::byte>(shared_, shared_->data()), bytes);
    } else {
      memory_ = AlignedBuffer(bytes);
    }
  }
  ~GossipTrainer() override {
    if (is_forked()) static_cast<void>(own_.release());
  }

  bool averages_gradients() const override { return false; }

  void mark(const std::string& what, const std::string& value) override {
    require_own_process();
    manifest_ = with_mark(manifest_, {what, value});
  }
  void require_same(const std::string& what, const std::string& value) override {
    require_own_process();
    const auto [setting, is_new] = settings_.emplace(what, value);
    if (!is_new) setting->second += ", " + value;
  }
  // A checkpoint of another back end has only a clock: its weights have no lineage here.
  void restore(const ResumeState& state) override {
    require_own_process();
    const auto own = [&state](const char* name) {
      const auto found = state.own.find(name);
      return found == state.own.end() ? 0 : found->second;
    };
    restored_ = {state.clock, own(lineage), own(incarnation)};
    alone_ = *restored_;
  }

  void start() override {
    require_own_process();
    make_session();
    if (session()) session()->start();
    running_ = true;
  }
  Place place() const override { return place_in_file(config_); }

  void update_send(double loss) override {
    require_own_process();
    if (!session() || !running_) return;
    if (own_->on_device) {
      session()->update_send(
          [&device = *own_->on_device, step = ++sent_] { return device.loss(step); });
    } else {
      session()->update_send([loss] { return loss; });
    }
  }
  StepReport update_wait(std::optional<double> loss) override {
    require_own_process();
    if (session() && running_) {
      if (!loss) return session()->update_wait();
      return session()->update_wait([value = *loss] { return value; });
    }
    if (running_) ++alone_.clock;
    StepReport report;
    report.clock = resume_state().clock;
    return report;
  }

  ResumeState resume_state() const override {
    require_own_process();
    const GossipState state = session() ? session()->resume_state() : alone_;
    return {state.clock, {{lineage, state.lineage}, {incarnation, state.incarnation}}};
  }
  void show(const std::string& name, double value) override {
    require_own_process();
    if (session()) session()->show(name, value);
  }
  void reload(const Config& fresh) override {
    require_own_process();
    if (session()) session()->reload(fresh);
  }
  FinishReport finish() override {
    require_own_process();
    running_ = false;
    return session() ? session()->finish() : FinishReport();
  }
  void leave() override {
    require_own_process();
    running_ = false;
    if (session()) session()->leave();
  }
  void break_off() override {
    if (GossipSession* const session = made_) session->break_off();
  }

 private:
  struct Own {
    std::optional<HostParameters> on_host;
    std::optional<DeviceParameters> on_device;
    std::unique_ptr<GossipSession> session;  // from start() on; null with back end null
  };

  GossipSession* session() const { return own_->session.get(); }

  void make_session() {
    for (const auto& [what, value] : settings_)
      manifest_ = with_mark(manifest_, setting_mark(what, value));
    if (config_.backend != Backend::gossip) return;
    if (passes_) {
      own_->on_device.emplace(manifest_, *passes_);
      own_->session = session_of(*own_->on_device);
    } else if (shared_) {
      own_->session =
          std::make_unique<attach::AttachedGossip>(config_, manifest_, shared_, threads_);
    } else {
      own_->on_host.emplace(manifest_, memory_.bytes(), threads_);
      own_->session = session_of(*own_->on_host);
    }
    if (restored_) session()->restore(*restored_);
    made_ = session();
  }

  std::unique_ptr<GossipSession> session_of(Parameters& parameters) {
    if (config_.gossip.daemon) return std::make_unique<attach::AttachedGossip>(config_, parameters);
    return std::make_unique<Gossip>(config_, parameters);
  }

  const unsigned threads_;
  const nanobind::object keeps_passes_;          // a session may ask them until it has ended
  std::optional<Asked> passes_;                  // of a model on a device
  std::size_t sent_ = 0;                         // steps
  std::map<std::string, std::string> settings_;  // require_same()
  std::shared_ptr<MemoryFile> shared_;           // with a node process
  std::unique_ptr<Own> own_ = std::make_unique<Own>();
  std::atomic<GossipSession*> made_ = nullptr;  // the session
  std::optional<GossipState> restored_;
  GossipState alone_;  // without a session
  bool running_ = false;
};

}  // namespace

std::unique_ptr<Trainer> make_gossip_trainer(const Config& config, std::vector<TensorSpec> tensors,
                                             unsigned threads, nanobind::handle passes) {
  return std::make_unique<GossipTrainer>(config, std::move(tensors), threads, passes);
}

}  // namespace dpwa::python
