#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/scratch_folder.h"
#include "bench/worker/group.h"

namespace dpwa::bench {

// One way in which workers and servers of a store exchange float32 values.
struct StoreSettings {
  std::uint64_t bytes = 100'000'000;  // of all values, a multiple of 4
  // So many, which grow in equal steps: the last one is about twice as large as they are on
  // average. Each has a push and a pull of its own, as the parameters of a model have.
  std::size_t keys = 1;
  std::size_t workers = 1;
  std::size_t servers = 1;
  std::size_t replicas = 0;
  std::string type = "dist_sync";
  std::string transport = "tcp";     // tcp, same_host
  std::string optimizer = "none";    // none: the merged value replaces the stored one
  std::string compression = "none";  // of pushes: none, fp16, 2bit
  bool ping_pong = false;            // worker i and server i keep to a core each

  std::size_t processes() const { return workers + servers; }
};

// Elements of each key.
std::vector<std::size_t> elements_of_keys(const StoreSettings& settings);

// What is wrong with them; empty: nothing.
std::string problem_of(const StoreSettings& settings);

// The cluster file for them. `ports`: of the workers and then of the servers.
std::string store_file_text(const StoreSettings& settings, const std::vector<std::uint16_t>& ports);

// The processes of a store: StoreServers, and StoreClients that all do the same number of pushes
// and pulls. Throws std::runtime_error.
class StoreGroup {
 public:
  explicit StoreGroup(const StoreSettings& settings);
  Group& group() { return *group_; }

 private:
  ScratchFolder folder_;
  std::unique_ptr<Group> group_;
};

// Memory that the processes take together, in bytes.
std::uint64_t store_group_memory(const StoreSettings& settings);

}  // namespace dpwa::bench
