// dpwa._core: what the Python package needs of the torch-free core. Lists of plain values in and
// out; the package makes classes and words of them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "dpwa/config/names.h"
#include "dpwa/config/node_threads.h"
#include "dpwa/log/log.h"
#include "dpwa/snapshot/manifest.h"
#include "python/core/patient_call.h"
#include "python/core/trainer.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using Released = nb::call_guard<nb::gil_scoped_release>;
// Name, dtype, rule, shape.
using Tensor = std::tuple<std::string, std::string, std::string, std::vector<std::uint64_t>>;
using State = std::tuple<double, std::uint64_t, std::uint64_t>;

DType dtype_named(const std::string& name) {
  for (int value = 1; value <= static_cast<int>(DType::boolean); ++value)
    if (name_of(static_cast<DType>(value)) == name) return static_cast<DType>(value);
  throw std::invalid_argument("tensors of type " + name + " cannot be shared");
}

BlendRule rule_named(const std::string& name) {
  if (name == "interpolate") return BlendRule::interpolate;
  if (name == "maximum") return BlendRule::maximum;
  if (name == "carry") return BlendRule::carry;
  throw std::invalid_argument("rule '" + name + "'; accepted: interpolate, maximum, carry");
}

std::shared_ptr<Trainer> make_trainer(const Config& config, const std::vector<Tensor>& tensors,
                                      unsigned threads) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, dtype, rule, shape] : tensors)
    specs.push_back({name, dtype_named(dtype), rule_named(rule), shape});
  return std::make_shared<Trainer>(config, std::move(specs), threads);
}

// Of a node whose program has been interrupted: nobody hears of an error.
void leave(Trainer& trainer) {
  try {
    trainer.leave();
  } catch (const std::exception&) {
    // It was not there yet.
  }
}

nb::dict words_of(const StepReport& report) {
  nb::dict words;
  const auto outcome = to_string(report.outcome);
  words["outcome"] = nb::str(outcome.data(), outcome.size());
  words["peer"] = report.peer;
  words["factor"] = report.factor;
  words["staleness"] = report.staleness;
  words["distance"] = report.distance;
  words["clipped"] = report.clipped;
  words["refused"] = report.refused;
  words["bytes"] = report.bytes;
  words["waited"] = std::chrono::duration<double>(report.waited).count();
  words["clock"] = report.clock;
  words["block"] = report.block;
  words["blocks"] = report.blocks;
  words["same_host"] = report.same_host;
  words["pulls_ok"] = report.pulls_ok;
  words["pulls_failed"] = report.pulls_failed;
  return words;
}

nb::dict words_of(const FinishReport& report) {
  nb::dict words;
  words["averaged"] = report.averaged;
  words["participants"] = report.participants;
  words["distance_to_average"] = report.distance_to_average;
  words["enough"] = report.enough;
  return words;
}

void add_errors(nb::module_& module) {
  static nb::exception<std::runtime_error> error(module, "Error", PyExc_RuntimeError);
  static nb::exception<std::logic_error> misuse(module, "UsageError", error.ptr());
  static nb::exception<std::invalid_argument> model(module, "ModelError", error.ptr());
  static nb::exception<ConfigError> config(module, "ConfigError", error.ptr());
}

void add_config(nb::module_& module) {
  nb::class_<Config>(module, "Config")
      .def_ro("name", &Config::self)
      .def_ro("cluster", &Config::cluster)
      .def_prop_ro("file", [](const Config& config) { return config.file.string(); })
      .def_prop_ro("backend",
                   [](const Config& config) {
                     return std::string(config::name_in(config::backend_words, config.backend));
                   })
      .def_prop_ro("rank", &Config::self_index)
      .def_prop_ro("size", [](const Config& config) { return config.nodes.size(); })
      .def_prop_ro("threads", [](const Config& config) { return node_threads(config); });
  module.def(
      "load_config",
      [](const std::string& file, const std::string& name, const std::vector<std::string>& join) {
        return load_config(file, name, join);
      },
      nb::arg("file"), nb::arg("name"), nb::arg("join"), Released());
}

void add_trainer(nb::module_& module) {
  nb::class_<Trainer>(module, "Trainer")
      .def(nb::new_(&make_trainer), nb::arg("config"), nb::arg("tensors"), nb::arg("threads"))
      .def("memory",
           [](const std::shared_ptr<Trainer>& trainer) {
             auto owner = std::make_unique<std::shared_ptr<Trainer>>(trainer);
             const nb::capsule capsule(owner.get(), [](void* held) noexcept {
               delete static_cast<std::shared_ptr<Trainer>*>(held);
             });
             static_cast<void>(owner.release());
             const auto bytes = trainer->memory();
             return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()},
                                                                      capsule);
           })
      .def("offsets",
           [](const Trainer& trainer) {
             std::vector<std::uint64_t> offsets;
             for (std::size_t i = 0; i < trainer.manifest().tensors().size(); ++i)
               offsets.push_back(trainer.manifest().offset_of(i));
             return offsets;
           })
      .def("mark", &Trainer::mark)
      .def("require_same", &Trainer::require_same)
      .def("restore",
           [](Trainer& trainer, const State& state) {
             trainer.restore({std::get<0>(state), std::get<1>(state), std::get<2>(state)});
           })
      .def("start",
           [](const std::shared_ptr<Trainer>& trainer) {
             patient_call<void>([trainer] { trainer->start(); }, [trainer] { leave(*trainer); });
           })
      .def("update_send", &Trainer::update_send, Released())
      .def("update_wait",
           [](Trainer& trainer, std::optional<double> loss) {
             StepReport report;
             {
               const nb::gil_scoped_release released;
               report = trainer.update_wait(loss);
             }
             return words_of(report);
           })
      .def("resume_state",
           [](const Trainer& trainer) {
             const GossipState state = trainer.resume_state();
             return State(state.clock, state.lineage, state.incarnation);
           })
      .def("reload", &Trainer::reload, Released())
      .def("finish",
           [](const std::shared_ptr<Trainer>& trainer) {
             return words_of(patient_call<FinishReport>([trainer] { return trainer->finish(); },
                                                        [trainer] { leave(*trainer); }));
           })
      .def("leave", &Trainer::leave, Released());
}

}  // namespace
}  // namespace dpwa::python

NB_MODULE(_core, module) {
  using namespace dpwa::python;
  nb::set_leak_warnings(false);  // parameters that live as long as the program hold their memory
  module.attr("version") = std::string(dpwa::version());
  add_errors(module);
  add_config(module);
  add_trainer(module);
  module.def("warn",
             [](const std::string& text) { dpwa::log(dpwa::LogLevel::warn, "adapter", text); });
}
