#include "dpwa/base/gpu_load.h"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"

namespace dpwa {

struct GpuWatch::State {
  Mutex mutex;
  Condition changed;
  std::vector<GpuLoad> loads DPWA_GUARDED_BY(mutex);
  TimePoint at DPWA_GUARDED_BY(mutex);
  bool ended DPWA_GUARDED_BY(mutex) = false;
};

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto period = std::chrono::seconds(1);
constexpr auto stale = std::chrono::seconds(5);

// What is needed of nvml.h, which is not at hand where programs are built.
using Device = void*;
struct Utilization {
  unsigned gpu = 0;  // percent
  unsigned memory = 0;
};
struct Memory {
  unsigned long long total = 0;  // NOLINT(google-runtime-int): as in nvml.h
  unsigned long long free = 0;   // NOLINT(google-runtime-int)
  unsigned long long used = 0;   // NOLINT(google-runtime-int)
};

class Nvml {
 public:
  explicit Nvml(const std::string& file) : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    is_there_ =
        library_ != nullptr && find("nvmlInit_v2", init_) &&
        find("nvmlDeviceGetCount_v2", count_) && find("nvmlDeviceGetHandleByIndex_v2", device_) &&
        find("nvmlDeviceGetName", name_) && find("nvmlDeviceGetUtilizationRates", utilization_) &&
        find("nvmlDeviceGetMemoryInfo", memory_) && init_() == 0;
  }

  bool is_there() const { return is_there_; }

  std::vector<GpuLoad> loads() const {
    std::vector<GpuLoad> all;
    unsigned count = 0;
    if (count_(&count) != 0) return all;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      std::array<char, 97> name{};
      Utilization utilization;
      Memory memory;
      if (device_(i, &device) != 0 || memory_(device, &memory) != 0) continue;
      GpuLoad& load = all.emplace_back();
      if (name_(device, name.data(), name.size() - 1) == 0)
        load.name = to_plain_text(name.data(), name.size());
      if (utilization_(device, &utilization) == 0) load.busy = utilization.gpu / 100.0;
      load.memory_used_bytes = memory.used;
      load.memory_bytes = memory.total;
    }
    return all;
  }

 private:
  template <class Function>
  bool find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    return function != nullptr;
  }

  void* library_;  // stays: its threads may run
  int (*init_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*device_)(unsigned, Device*) = nullptr;
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*utilization_)(Device, Utilization*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  bool is_there_ = false;
};

void watch(GpuWatch::State& state, const std::string& library) {
  name_thread("dpwa-gpu");
  const Nvml nvml(library);
  if (!nvml.is_there()) return;
  MutexLock lock(state.mutex);
  while (!state.ended) {
    lock.unlock();
    std::vector<GpuLoad> loads = nvml.loads();
    lock.lock();
    state.loads = std::move(loads);
    state.at = SteadyClock::now();
    const TimePoint next = state.at + period;
    while (!state.ended && state.changed.wait_until(lock, next)) {
    }
  }
}

}  // namespace

GpuWatch::GpuWatch(std::string library) : state_(std::make_shared<State>()) {
  start_background_thread([state = state_, library = std::move(library)] {
    watch(*state, library);
  }).detach();
}

GpuWatch::~GpuWatch() {
  const MutexLock lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
}

std::vector<GpuLoad> GpuWatch::loads() const {
  const MutexLock lock(state_->mutex);
  const bool is_fresh = SteadyClock::now() - state_->at < stale;
  return is_fresh ? state_->loads : std::vector<GpuLoad>();
}

const GpuWatch& own_gpu_watch() {
  static const GpuWatch& watch = *new GpuWatch;
  return watch;
}

}  // namespace dpwa
