#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/own_address.h"
#include "dpwa/base/processors.h"
#include "dpwa/config/config.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/launch/place.h"
#include "dpwa/net/free_ports.h"
#include "python/core/bindings.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using launch::Introduction;
using launch::LaunchPlace;

// Where this process listens, for others that reach it as it reaches `meeting_point`.
std::string introduction_of(int local_rank, const std::string& meeting_point) {
  const launch::LauncherEnvironment environment = launch::launcher_environment();
  Introduction introduction;
  introduction.host = environment.variable("DPWA_HOST");
  introduction.host_given = !introduction.host.empty();
  if (!introduction.host_given) introduction.host = own_address_towards(meeting_point);
  if (introduction.host.empty()) throw std::runtime_error("no route to " + meeting_point);
  introduction.bind = environment.variable("DPWA_BIND");
  introduction.port = launch::own_port(environment, local_rank);
  if (introduction.port == 0) introduction.port = net::free_ports(1).front();
  introduction.meeting_point = meeting_point;
  introduction.processors = usable_processors();
  return to_text(introduction);
}

// The cluster file of a program that a launcher may have started, as LaunchedConfig of the adapters
// has it. Processes that no file lists meet through the store of torch: by `meet` of
// python/dpwa/launch.py, which outlives it.
class Launched {
 public:
  Launched(std::string file, std::string name, std::vector<std::string> join, nb::handle meet)
      : file_(std::move(file)),
        name_(std::move(name)),
        join_(std::move(join)),
        meet_(meet),
        config_(load_config(file_, name_, join_, [this](Config& config) { place(config); })) {}

  const Config& config() const { return config_; }
  Config reload() const {
    return reload_config(file_, name_, join_, [this](Config& fresh) {
      if (fresh.nodes.empty() && has_met_) fresh.nodes = config_.nodes;
      fresh.self = config_.self;
    });
  }

 private:
  void place(Config& config) {
    const auto place = launch::find_place(launch::launcher_environment());
    if (!place) return;
    if (!config.nodes.empty()) {
      config.self = launch::name_in_file(config, *place);
      return;
    }
    if (!config.self.empty() || !config.seeds.empty() || config.gossip.daemon ||
        (config.backend == Backend::kvstore && !is_local(config.kvstore.type)))
      fail_at_key(
          config, "nodes",
          "missing; with seeds, a name, gossip.daemon or backend kvstore the Python package "
          "takes a rank of " +
              place->launcher + " for nodes alone; accepted: nodes in the order of ranks");
    config.nodes = launch::settle(introductions(*place, config.cluster));
    config.self = launch::node_name(place->rank);
    has_met_ = true;
  }

  std::vector<Introduction> introductions(const LaunchPlace& place, const std::string& cluster) {
    std::vector<std::string> texts;
    if (place.size == 1) {
      texts.push_back(introduction_of(place.local_rank, "127.0.0.1"));
    } else {
      const nb::gil_scoped_acquire acquired;
      const auto introduce =
          nb::cpp_function([local_rank = place.local_rank](const std::string& at) {
            return introduction_of(local_rank, at);
          });
      texts = nb::cast<std::vector<std::string>>(meet_(place, cluster, introduce));
    }
    std::vector<Introduction> all;
    for (const std::string& text : texts) all.push_back(launch::introduction_from(text));
    return all;
  }

  const std::string file_;
  const std::string name_;
  const std::vector<std::string> join_;
  const nb::handle meet_;
  bool has_met_ = false;
  const Config config_;
};

}  // namespace

void add_launch(nb::module_& module) {
  nb::class_<LaunchPlace>(module, "LaunchPlace")
      .def_ro("launcher", &LaunchPlace::launcher)
      .def_ro("run", &LaunchPlace::run)
      .def_ro("rank", &LaunchPlace::rank)
      .def_ro("size", &LaunchPlace::size)
      .def_ro("host", &LaunchPlace::meeting_host)
      .def_ro("port", &LaunchPlace::meeting_port)
      .def_ro("hosted", &LaunchPlace::hosted);
  nb::class_<Launched>(module, "LaunchedConfig")
      .def(
          "__init__",
          [](Launched* launched, const std::string& file, const std::string& name,
             const std::vector<std::string>& join, nb::handle meet) {
            const nb::gil_scoped_release released;
            new (launched) Launched(file, name, join, meet);
          },
          nb::arg("file"), nb::arg("name"), nb::arg("join"), nb::arg("meet"))
      .def_prop_ro("config", &Launched::config)
      .def("reload", &Launched::reload, Released());
  module.def("is_launched",
             [] { return launch::find_place(launch::launcher_environment()).has_value(); });
}

}  // namespace dpwa::python
