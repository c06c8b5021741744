#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvstore {

// Whether copies from a device are complete; `waits`: until they are. Empty: nothing is copied.
using Came = std::function<bool(bool waits)>;

// Values in host memory, in the order of their shape. They stay as they are until the use is over.
struct Lent {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> owner{};  // of the memory; null: it outlives the use
  Came came{};
};

Lent zeros(std::uint64_t bytes);

// A value as the servers have sent it, one slice after the other.
using Slices = std::vector<SharedBytes>;
// False: a slice is missing, or they have another size.
bool copy_slices(const Slices& slices, std::span<std::byte> to);
// Whether they have just these bytes.
bool equal(const Slices& slices, std::span<const std::byte> bytes);

// The model of a worker in a framework that the core does not know. Values are the keys of the
// store: the parameters in the order of the forward pass, each once, and behind them the
// floating-point buffers, such as BatchNorm statistics, one value for all of one type. Gradients go
// by the index of the parameters that are trained. All is called by the training thread.
class WorkerModel {
 public:
  struct Value {
    std::string name;
    ValueSpec spec;
    bool is_buffers = false;
  };
  virtual ~WorkerModel() = default;

  const std::vector<Value>& values() const { return values_; }
  std::size_t parameters() const { return parameters_; }  // so many of the values, the first ones
  const std::vector<std::size_t>& trained() const { return trained_; }  // of the values
  const Value& trained_value(std::size_t trained) const { return values_[trained_[trained]]; }

  // Throws std::logic_error that names a tensor with which the program no longer trains this model.
  virtual void check() const = 0;
  // A value that the program has written since know_written().
  virtual std::optional<std::size_t> written() const = 0;
  virtual void know_written() = 0;

  // --- values
  virtual Lent value(std::size_t index) = 0;  // of the host at once
  // Of buffers: what the servers have, minus what they are now. Of a trained parameter: what it was
  // at remember(), minus what it is.
  virtual Lent change(std::size_t index) = 0;
  virtual void remember() = 0;
  // Between these two calls come write() and take_mean(). After begin_writes() nothing reads memory
  // that they were given before.
  virtual void begin_writes() {}
  virtual void end_writes() {}
  virtual void write(std::size_t index, const Slices& slices) = 0;

  // --- gradients
  virtual bool is_frozen(std::size_t trained) const = 0;  // for a while
  virtual bool has_gradient(std::size_t trained) const = 0;
  virtual Lent gradient(std::size_t trained) = 0;  // there is one
  // Copies it; zeros if there is none. `to` is of memory().
  virtual Came copy_gradient(std::size_t trained, std::span<std::byte> to) = 0;
  virtual AlignedBuffer memory(std::size_t bytes) { return AlignedBuffer(bytes); }
  // The gradient becomes the mean. `mean` is of memory().
  virtual void take_mean(std::size_t trained, const Slices& mean) = 0;
  virtual void take_mean(std::size_t trained, std::span<const std::byte> mean) = 0;
  virtual void drop_gradient(std::size_t trained) = 0;
  // A gradient leaves during backward(). check_sent() throws std::logic_error that names the
  // parameter where one was changed, or taken away, since; forget_sent() ends that.
  virtual void note_sent(std::size_t trained) = 0;
  virtual void check_sent() const = 0;
  virtual void forget_sent() = 0;

 protected:
  void add_parameter(std::string name, ValueSpec spec, bool trained);
  void add_buffers(ValueSpec spec);  // after all parameters; one for each type

 private:
  std::vector<Value> values_;
  std::size_t parameters_ = 0;
  std::vector<std::size_t> trained_;
};

// The checksum of all trained parameters.
std::uint32_t checksum_of(WorkerModel& model);

}  // namespace dpwa::kvstore
