#include "adapters/common/graph_capture.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <stdexcept>

namespace dpwa {

// Not linked, as in page_lock.cpp. The streams of c10 know it from LibTorch 2.13 on alone.
CaptureStatus* capture_status_call() {
  static auto* const call =
      reinterpret_cast<CaptureStatus*>(::dlsym(RTLD_DEFAULT, "cudaStreamIsCapturing"));
  return call;
}

bool is_capturing(c10::Device device, CaptureStatus* call) {
  if (call == nullptr) return false;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  int status = 0;
  return call(stream.native_handle(), &status) == 0 && status != 0;
}

void refuse_in_capture(const std::string& call) {
  throw std::logic_error(call +
                         " while a CUDA graph is captured, whose replays would exchange nothing "
                         "with other nodes; accepted: capture other work, and call it after each "
                         "replay");
}

void require_no_capture(c10::Device device) {
  if (!device.is_cpu() && is_capturing(device)) refuse_in_capture("backward()");
}

}  // namespace dpwa
