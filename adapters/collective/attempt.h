#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/next_group.h"
#include "dpwa/base/threads.h"

namespace dpwa::collective {

// One attempt of the Assembler to form a group, on a thread that is never waited for.
struct Attempt {
  NextGroup next;
  bool newcomer = false;
  std::stop_source stop;
  Mutex mutex;
  std::uint16_t store_port DPWA_GUARDED_BY(mutex) = 0;
  bool done DPWA_GUARDED_BY(mutex) = false;
  std::unique_ptr<ProcessGroup> group DPWA_GUARDED_BY(mutex);  // null: it failed
  std::string problem DPWA_GUARDED_BY(mutex);

  void run(const std::shared_ptr<const Engine>& engine, GroupOptions options,
           const std::string& host_address);
};

}  // namespace dpwa::collective
