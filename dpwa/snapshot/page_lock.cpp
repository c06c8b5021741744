#include "dpwa/snapshot/page_lock.h"

#include <dlfcn.h>

#include <memory>

namespace dpwa {
namespace {

constexpr unsigned for_all_devices = 1;  // cudaHostRegisterPortable

// Not linked: a build without CUDA has the same sources, and the wheels of LibTorch bring the
// runtime under changing names.
template <class Function>
Function* function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

const PageLockCalls& page_lock_calls() {
  static const PageLockCalls calls{function<int(void*, std::size_t, unsigned)>("cudaHostRegister"),
                                   function<int(void*)>("cudaHostUnregister"),
                                   function<int()>("cudaGetLastError")};
  return calls;
}

bool lock_pages(AlignedBuffer& buffer, const PageLockCalls& calls) {
  const auto bytes = buffer.bytes();
  if (calls.lock == nullptr || calls.unlock == nullptr || calls.take_error == nullptr) return false;
  if (calls.lock(bytes.data(), bytes.size(), for_all_devices) != 0) {
    calls.take_error();  // LibTorch would take it for that of its next kernel
    return false;
  }
  buffer.keep(std::shared_ptr<void>(bytes.data(), [calls](void* data) {
    if (calls.unlock(data) != 0) calls.take_error();  // the runtime ends before the process does
  }));
  return true;
}

}  // namespace dpwa
