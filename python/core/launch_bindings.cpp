#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "dpwa/launch/introduction.h"
#include "dpwa/launch/launched_config.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/launch/place.h"
#include "python/core/bindings.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using launch::LaunchPlace;
using launch::OwnEndpoint;

// Processes that no file lists meet through the store of torch: by `meet` of python/dpwa/launch.py.
launch::Meet meeting_by(nb::handle meet) {
  return [meet](const LaunchPlace& place, const std::string& cluster, const OwnEndpoint& own) {
    std::vector<launch::Introduction> all;
    if (place.size == 1) {
      all.push_back(introduction_of(own, "127.0.0.1"));
    } else {
      const nb::gil_scoped_acquire acquired;
      const auto introduce = nb::cpp_function(
          [&own](const std::string& at) { return to_text(introduction_of(own, at)); });
      for (const auto& text : nb::cast<std::vector<std::string>>(meet(place, cluster, introduce)))
        all.push_back(launch::introduction_from(text));
    }
    return launch::settle(all);
  };
}

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
  nb::class_<LaunchedConfig>(module, "LaunchedConfig")
      .def(
          "__init__",
          [](LaunchedConfig* launched, const std::string& file, const std::string& name,
             const std::vector<std::string>& join, nb::handle meet) {
            const nb::gil_scoped_release released;
            new (launched) LaunchedConfig(file, name, join, meeting_by(meet));
          },
          nb::arg("file"), nb::arg("name"), nb::arg("join"), nb::arg("meet"))
      .def_prop_ro("config", &LaunchedConfig::config)
      .def("reload", &LaunchedConfig::reload, Released());
  module.def("is_launched",
             [] { return launch::find_place(launch::launcher_environment()).has_value(); });
}

}  // namespace dpwa::python
