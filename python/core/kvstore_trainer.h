#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvworker/host_model.h"
#include "dpwa/kvworker/worker.h"
#include "python/core/trainer.h"

namespace dpwa::python {

// Back end kvstore, for the types dist_*.
class KvstoreTrainer final : public Trainer {
 public:
  // `trained`: by tensor. `passes`: of a model on a device, which copies its values from and to
  // memory(); none: it is there. Throws ConfigError for what this package lacks of the back end.
  KvstoreTrainer(const Config& config, std::vector<TensorSpec> tensors,
                 const std::vector<bool>& trained, nanobind::handle passes);
  ~KvstoreTrainer() override;

  kvstore::HostModel& model();
  kvstore::Worker& worker();

  void mark(const std::string& what, const std::string& value) override {
    require_same(what, value);
  }
  void require_same(const std::string& what, const std::string& value) override {
    worker().require_same(what, value);
  }
  void restore(const ResumeState& state) override { worker().restore(state); }
  void start() override { worker().start(); }
  Place place() const override;
  void update_send(double) override { worker().update_send(); }
  StepReport update_wait(std::optional<double> loss) override;
  ResumeState resume_state() const override;
  void show(const std::string& name, double value) override { worker().show(name, value); }
  void reload(const Config& fresh) override { worker().reload(fresh); }
  FinishReport finish() override { return worker().finish(); }
  void leave() override { worker().leave(); }
  void break_off() override { own_->worker.break_off(); }

 private:
  struct Own {
    Own(const Config& config, const Manifest& manifest, std::span<std::byte> memory,
        const std::vector<bool>& trained)
        : model(manifest, memory, trained), worker(config, model) {}
    kvstore::HostModel model;
    kvstore::Worker worker;
  };
  std::unique_ptr<Own> own_;
};

}  // namespace dpwa::python
