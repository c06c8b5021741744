#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace dpwa::test {

// The CPU as an accelerator: copies are done at once, but streams and events exist, are logged, and
// an event completes only when `complete` says so, or was recorded as one of the first
// `complete_until`. Side streams are "side", "side 2" and so on.
// Stands in for the CPU's own guard while it lives.
class FakeAccelerator final : public c10::impl::NoOpDeviceGuardImpl<at::kCPU> {
 public:
  FakeAccelerator() : before_(registry().exchange(this)) {}
  ~FakeAccelerator() override { registry().store(before_); }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, device, current_);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, ++side_streams_);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), std::exchange(current_, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream) const override { return handle(); }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    if (*event == nullptr) *event = new int;
    *static_cast<int*>(*event) = ++recorded;
    log += "record " + name(stream) + "; ";
  }
  void block(void* event, const c10::Stream& stream) const override {
    awaited.push_back(*static_cast<int*>(event));
    log += "wait on " + name(stream) + "; ";
  }
  bool queryEvent(void* event) const override {
    if (queries_left > 0 && --queries_left == 0) complete = true;
    return complete || *static_cast<int*>(event) <= complete_until;
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream& stream) const override {
    log += "keep for " + name(stream) + "; ";
  }
  void synchronizeEvent(void* event) const override {
    awaited.push_back(*static_cast<int*>(event));
    log += "synchronize; ";
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<int*>(event);
  }

  static void* handle() {  // of every stream
    static char one = 0;
    return &one;
  }

  mutable bool complete = true;
  mutable int recorded = 0;  // events
  int complete_until = 0;
  mutable int queries_left = 0;  // above 0: complete after so many more queries
  mutable std::string log;
  mutable std::vector<int> awaited;  // in the order of the waits: which record, from 1

 private:
  static std::atomic<const c10::impl::DeviceGuardImplInterface*>& registry() {
    return c10::impl::device_guard_impl_registry[static_cast<std::size_t>(at::kCPU)];
  }
  static std::string name(const c10::Stream& stream) {
    if (stream.id() < 2) return stream.id() == 0 ? "training" : "side";
    return "side " + std::to_string(stream.id());
  }

  const c10::impl::DeviceGuardImplInterface* before_;
  mutable c10::StreamId current_ = 0;
  mutable c10::StreamId side_streams_ = 0;
};

}  // namespace dpwa::test
