// dpwa-measure-collective: a training step of backend collective, and all-reduces by its engines. A
// program of its own, because it needs LibTorch.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/launch/rendezvous.h"
#include "bench/serve.h"
#include "bench/train/training_node.h"
#include "dpwa/config/config.h"
#include "dpwa/security/security.h"

namespace dpwa::bench {
namespace {

// A group of processes of this machine on one engine, without any node: the basis of the back end.
struct BareGroup {
  collective::Engine engine;
  std::unique_ptr<collective::ProcessGroup> members;

  void allreduce(const at::Tensor& tensor) const {
    std::vector<at::Tensor> list{tensor};
    members->c10d()->allreduce(list)->wait();
  }
};

// Rank 0 hosts the rendezvous at `port` of loopback. `key_file`: of psk; empty: nothing is
// encrypted. Throws collective::CollectiveError.
BareGroup form_bare_group(const std::string& engine, int rank, int size, std::uint16_t port,
                          bool same_host = true, const std::string& key_file = {}) {
  constexpr auto patience = std::chrono::seconds(60);
  auto kind = collective::EngineKind::automatic;
  for (const auto& known : collective::known_engines())
    if (known.name == engine) kind = known.kind;
  collective::GroupOptions options;
  options.rank = rank;
  options.size = size;
  options.same_host = same_host;
  if (!key_file.empty()) {
    Config config;
    config.security.mode = "psk";
    config.security.key_file = key_file;
    options.security = make_security(config);
  }
  auto meeting = rank == 0 ? launch::Rendezvous::listen("127.0.0.1", patience, port)
                           : launch::Rendezvous::connect("127.0.0.1", port, patience);
  BareGroup group{collective::make_engine(kind), nullptr};
  group.members = collective::ProcessGroup::form(group.engine, meeting.store(), options);
  meeting.leave(size - 1, patience);
  return group;
}

// A process that has told everything as it began.
class Told : public Measurer {
 public:
  explicit Told(Json facts) : facts_(std::move(facts)) {}
  Json facts() const override { return facts_; }
  Json answer(const Json&) override { throw std::logic_error("it has told everything"); }

 private:
  const Json facts_;
};

Json engines() {
  Json all = Json::array();
  for (const auto& known : collective::known_engines())
    all.push_back({{"name", known.name}, {"absent", known.absent}});
  return {{"engines", all}};
}

int rank_of(const Json& job) {
  if (job.contains("rank")) return job.at("rank");
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr) throw std::runtime_error("the job names no rank, and mpirun gives none");
  return std::atoi(text);
}

// Some of the times, from all of the run: mpirun tears longer lines apart.
Json some_of(const std::vector<std::int64_t>& times) {
  constexpr std::size_t most = 100;
  Json some = Json::array();
  for (std::size_t i = 0; i < std::min(most, times.size()); ++i)
    some.push_back(times[i * times.size() / std::min(most, times.size())]);
  return some;
}

// One rank of a bare all-reduce. Job: {"engine", "nodes", "store_port", "bytes", "seconds", and the
// "rank"; without one it is that of mpirun; engine dpwa: "lent": the vector lies in memory of the
// group, "same_host": whether there is such memory, "key_file": of psk}. Facts of rank 0:
// {"times_ns", "setting"}
Json allreduces(const Json& job) {
  at::set_num_threads(1);
  const int rank = rank_of(job);
  const auto group = form_bare_group(job.at("engine"), rank, job.at("nodes"), job.at("store_port"),
                                     job.value("same_host", true), job.value("key_file", ""));
  const auto count = job.at("bytes").get<std::int64_t>() / 4;
  const auto vector =
      job.value("lent", false)
          ? group.members->c10d()->getDefaultBackend()->allocateTensor(count, at::kFloat)
          : at::empty({count});
  vector.zero_();  // whose sums stay finite
  // Connected, pages there.
  const auto once = timed(3, [&] { group.allreduce(vector); }).back();
  // The same number on all.
  const auto wanted = at::full({1}, 1e9 * job.at("seconds").get<double>() / double(once));
  const auto sum = wanted.to(at::kFloat);
  group.allreduce(sum);
  const auto times_wanted = std::llround(sum.item<double>() / group.members->size());
  const auto times =
      timed(std::clamp<std::int64_t>(times_wanted, 1, 1'000'000), [&] { group.allreduce(vector); });
  group.members->leave(std::chrono::seconds(5));
  if (rank != 0) return Json::object();
  return {{"times_ns", some_of(times)},
          {"setting",
           group.members->setting().empty() ? group.engine.setting : group.members->setting()}};
}

// A node that trains by backend collective; bench/peers/ddp_step.py answers the same, but for
// `allreduce`. Job: {"nodes", "store_port", and what TrainingNode takes}
//   -> {"do": "allreduce", "count"}  <- {"times_ns", "cpu_s"}
class CollectiveNode : public TrainingNode {
 public:
  explicit CollectiveNode(const Json& job)
      : TrainingNode(job),
        bare_(form_bare_group("dpwa", job.at("rank"), job.at("nodes"), job.at("store_port"))),
        flat_(at::full({facts().at("parameters").get<std::int64_t>()}, 0.F)) {}

  Json answer(const Json& command) override {
    if (command.at("do") != "allreduce") return TrainingNode::answer(command);
    bare_.allreduce(flat_);
    Json result = {{"times_ns", timed(command.at("count"), [this] { bare_.allreduce(flat_); })}};
    result["cpu_s"] = processor_seconds();
    return result;
  }

 private:
  const BareGroup bare_;
  const at::Tensor flat_;  // whose sums stay finite
};

}  // namespace
}  // namespace dpwa::bench

int main(int argc, char** argv) {
  using namespace dpwa::bench;
  return serve(
      argc, argv,
      {{"collective", [](const Json& job) { return std::make_unique<CollectiveNode>(job); }},
       {"engine", [](const Json& job) { return std::make_unique<Told>(allreduces(job)); }},
       {"engines", [](const Json&) { return std::make_unique<Told>(engines()); }}});
}
