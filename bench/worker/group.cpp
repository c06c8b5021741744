#include "bench/worker/group.h"

#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
Group::Group(const std::filesystem::path& program, const std::vector<NodeJob>& jobs) {
  for (const NodeJob& one : jobs) {
    nodes_.push_back(
        {std::make_unique<Child>(std::vector<std::string>{program.string()}), one.pulls});
    Json job = one.job;
    job["instruction_set"] = kernels::instruction_set();
    nodes_.back().process->send(job);
  }
  for (const Node& node : nodes_) node.process->receive();
}

std::vector<Json> Group::ask(const Json& command, bool pullers_only) {
  for (const Node& node : nodes_) {
    if (node.pulls || !pullers_only) node.process->send(command);
  }
  std::vector<Json> answers;
  for (const Node& node : nodes_) {
    if (node.pulls || !pullers_only) answers.push_back(node.process->receive());
  }
  return answers;
}

Group::Marks Group::mark() {
  Marks marks;
  for (const Json& node : ask({{"do", "mark"}}, false)) {
    marks.cpu_s += node.at("cpu_s").get<double>();
    marks.tcp_bytes += node.at("tcp_bytes").get<double>();
  }
  return marks;
}

}  // namespace dpwa::bench
