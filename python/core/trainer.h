#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/config/config.h"
#include "dpwa/config/place.h"
#include "dpwa/rules/resume_state.h"
#include "dpwa/rules/step_report.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "dpwa/snapshot/manifest.h"
#include "python/core/program_thread.h"

namespace dpwa::python {

// A Python program as a node, under one back end: the flat memory of its parameters, and what
// exchanges them. The calls are those of Adapter (adapters/adapter.h). One thread at a time; none
// of its calls needs the interpreter.
//
// In a process that was forked from the one that made it nothing is ended: its threads are not
// there.
class Trainer {
 public:
  virtual ~Trainer() = default;
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  const Config& config() const { return config_; }
  const Manifest& manifest() const { return manifest_; }
  // total_bytes() of the manifest, zeroed.
  std::span<std::byte> memory() { return memory_.bytes(); }
  virtual bool averages_gradients() const { return true; }
  // By the thread of the program, with the interpreter's lock, after a call that may wait.
  virtual void settle() {}
  // In which calls that may wait for others are made.
  ProgramThread& program() { return *program_; }

  virtual void mark(const std::string& what, const std::string& value) = 0;
  virtual void require_same(const std::string& what, const std::string& value) = 0;
  virtual void restore(const ResumeState& state) = 0;
  virtual void start() = 0;
  virtual Place place() const = 0;
  virtual void update_send(double loss) = 0;
  virtual StepReport update_wait(std::optional<double> loss) = 0;
  virtual ResumeState resume_state() const = 0;
  virtual void show(const std::string& name, double value) = 0;
  virtual void reload(const Config& fresh) = 0;
  virtual FinishReport finish() = 0;
  virtual void leave() = 0;
  // Ends a wait for other nodes soon: the program has given up. Any thread.
  virtual void break_off() = 0;

 protected:
  // Opens the log of the cluster file unless the process has one open. Throws
  // std::invalid_argument that names a tensor that cannot be shared.
  Trainer(const Config& config, std::vector<TensorSpec> tensors);

  bool is_forked() const;
  void require_own_process() const;  // throws std::logic_error

  Config config_;
  Manifest manifest_;
  AlignedBuffer memory_;

 private:
  const pid_t process_;
  const std::shared_ptr<ProgramThread> program_ = std::make_shared<ProgramThread>();
};

// Back ends gossip, embedded or attached to a node process, and null; kvstore with a type local_*,
// where one process trains alone. `threads` may share a pass over the memory. `passes`:
// DevicePasses of python/dpwa/device.py, for parameters on a device; such a trainer has no memory.
// Otherwise null.
std::unique_ptr<Trainer> make_gossip_trainer(const Config& config, std::vector<TensorSpec> tensors,
                                             unsigned threads, nanobind::handle passes);

}  // namespace dpwa::python
