#pragma once

#include <c10/core/Device.h>

#include <string>

namespace dpwa {

// Of a device's runtime: the status of a capture on a stream; 0: there is none.
using CaptureStatus = int(void* stream, int* status);

// That of the CUDA runtime; null if this process has not loaded it.
CaptureStatus* capture_status_call();

// Whether the current stream of a device only records its work, into a graph. Any thread.
bool is_capturing(c10::Device device, CaptureStatus* call = capture_status_call());

// Throws std::logic_error: values of other nodes would be exchanged at the capture, and never at a
// replay.
[[noreturn]] void refuse_in_capture(const std::string& call);
// Does so for a pass under a back end that sends gradients, on a device that captures.
void require_no_capture(c10::Device device);

}  // namespace dpwa
