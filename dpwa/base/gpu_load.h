#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dpwa {

struct GpuLoad {
  std::string name;
  std::optional<double> busy;  // share of the last moments; none: it does not tell, as parts of one
  std::uint64_t memory_used_bytes = 0;
  std::uint64_t memory_bytes = 0;
};

// The GPUs of this machine, as NVIDIA's library NVML tells. A thread of its own loads the library
// and asks it once a second: a driver may take seconds to wake up, or hang. Without the library the
// thread ends at once. Any thread.
class GpuWatch {
 public:
  explicit GpuWatch(std::string library = "libnvidia-ml.so.1");
  ~GpuWatch();  // a thread that hangs is left behind
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Of the last seconds; empty: there are none, or none has answered. Does not wait.
  std::vector<GpuLoad> loads() const;

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

// Of this process; its thread starts with the first call.
const GpuWatch& own_gpu_watch();

}  // namespace dpwa
