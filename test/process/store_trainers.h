#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/process/server_processes.h"
#include "test/support/child_process.h"

namespace dpwa::test {

// Workers of the store as processes (store_trainer.cpp), beside its servers.
class StoreTrainers {
 public:
  StoreTrainers(const ServerProcesses& servers, std::vector<std::string> names,
                std::string optimizer, int steps);

  void start(int pause_ms);  // all of them
  void start(const std::string& name, int pause_ms);
  ChildProcess& at(const std::string& name) { return processes_.at(name); }
  bool finish();  // all end well
  void kill_all();

  // The steps that it began with: each life of a worker, and each time that it was left out.
  std::vector<unsigned> joined(const std::string& name) const { return numbers(name, "joined "); }
  std::uint64_t steps(const std::string& name) const { return numbers(name, "step ").size(); }
  bool used_memory(const std::string& name) const { return !numbers(name, "memory ").empty(); }
  std::string weights(const std::string& name) const;
  std::string log(const std::string& name) const;
  std::string logs() const;  // of the servers as well

 private:
  std::string output(const std::string& name) const;
  // What follows `word` in the lines that begin with it.
  std::vector<unsigned> numbers(const std::string& name, const std::string& word) const;

  const ServerProcesses& servers_;
  const std::vector<std::string> names_;
  const std::string optimizer_;
  const std::string steps_;
  std::map<std::string, ChildProcess> processes_;
};

}  // namespace dpwa::test
