#include "bench/kvstore/store_peers.h"

#include "dpwa/net/free_ports.h"

namespace dpwa::bench {

StepPeers::StepPeers(const std::vector<std::string>& command, const std::vector<Json>& jobs)
    : cpu_s_(jobs.size()) {
  for (const Json& job : jobs) {
    processes_.push_back(std::make_unique<Child>(command));
    processes_.back()->send(job);
  }
  for (auto& process : processes_) name_ = process->receive().at("name");
}

std::vector<double> StepPeers::steps(std::uint64_t count) {
  for (auto& process : processes_) process->send({{"do", "steps"}, {"count", count}});
  std::vector<double> times;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Json answer = processes_[i]->receive();
    const auto more = answer.at("times_us").get<std::vector<double>>();
    times.insert(times.end(), more.begin(), more.end());
    cpu_s_[i] = answer.at("cpu_s");
  }
  return times;
}

double StepPeers::cpu_s() const {
  double sum = 0;
  for (const double one : cpu_s_) sum += one;
  return sum;
}

std::unique_ptr<StepPeers> start_gloo(const std::string& python, const std::string& script,
                                      std::size_t ranks, std::uint64_t bytes,
                                      const std::string& folder) {
  std::vector<Json> jobs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    jobs.push_back(
        {{"rank", rank}, {"ranks", ranks}, {"bytes", bytes}, {"store", folder + "/gloo"}});
  }
  return std::make_unique<StepPeers>(std::vector{python, script}, jobs);
}

std::unique_ptr<StepPeers> start_ps_lite(const std::string& program, std::size_t workers,
                                         std::size_t servers, std::uint64_t bytes) {
  const std::vector<std::string> command{program, std::to_string(net::free_ports(1).front()),
                                         std::to_string(workers), std::to_string(servers),
                                         std::to_string(bytes)};
  return std::make_unique<StepPeers>(command, std::vector{Json::object()});
}

}  // namespace dpwa::bench
