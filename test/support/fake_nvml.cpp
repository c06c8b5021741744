// A stand-in for NVIDIA's management library: two GPUs, of which the second one does not tell how
// busy it is, as a part of a GPU. With DPWA_FAKE_NVML=hangs its start never ends.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr unsigned gpus = 2;
constexpr int not_supported = 3;
unsigned numbers[gpus] = {0, 1};

unsigned number_of(void* device) {
  return *static_cast<unsigned*>(device);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* const conduct = std::getenv("DPWA_FAKE_NVML");
  while (conduct != nullptr && std::string_view(conduct) == "hangs") ::pause();
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &numbers[index];
  return 0;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::snprintf(name, length, "Stand-in %u\x1b[31m", number_of(device));
  return 0;
}

struct Utilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  if (number_of(device) == 1) return not_supported;
  *utilization = {75, 20};
  return 0;
}

struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {16'000, 10'000, 6'000};
  return 0;
}

}  // extern "C"
