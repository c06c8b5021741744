// dpwa._core: what the Python package needs of the torch-free core. Lists of plain values in and
// out; the package makes classes and words of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "dpwa/config/names.h"
#include "dpwa/config/node_threads.h"
#include "dpwa/kvworker/error.h"
#include "dpwa/log/log.h"
#include "dpwa/net/shown_numbers.h"
#include "dpwa/parallel/shares.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/type_names.h"
#include "python/core/bindings.h"
#include "python/core/collective_trainer.h"
#include "python/core/kvstore_trainer.h"
#include "python/core/program_thread.h"
#include "python/core/trainer.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

// Name, dtype, rule, shape.
using Tensor = std::tuple<std::string, std::string, std::string, std::vector<std::uint64_t>>;
// The clock, and what the back end keeps beside it.
using State = std::tuple<double, std::map<std::string, std::uint64_t>>;

// `trained`: by tensor. `passes`: of a model on a device; none: it is in host memory.
nb::object make_trainer(const Config& config, const std::vector<Tensor>& tensors,
                        const std::vector<bool>& trained, unsigned threads, nb::object passes) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, dtype, rule, shape] : tensors) {
    try {
      specs.push_back({name, dtype_named(dtype), rule_named(rule), shape});
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("tensor '" + name + "': " + error.what());
    }
  }
  const nb::handle on_device = passes.is_none() ? nb::handle() : passes;
  if (config.backend == Backend::collective)
    return nb::cast(
        std::make_shared<CollectiveTrainer>(config, std::move(specs), trained, threads));
  if (config.backend == Backend::kvstore && !is_local(config.kvstore.type))
    return nb::cast(std::make_shared<KvstoreTrainer>(config, std::move(specs), trained, on_device));
  return nb::cast(
      std::shared_ptr<Trainer>(make_gossip_trainer(config, std::move(specs), threads, on_device)));
}

void add_errors(nb::module_& module) {
  static nb::exception<std::runtime_error> error(module, "Error", PyExc_RuntimeError);
  static nb::exception<std::logic_error> misuse(module, "UsageError", error.ptr());
  static nb::exception<std::invalid_argument> model(module, "ModelError", error.ptr());
  static nb::exception<ConfigError> config(module, "ConfigError", error.ptr());
  // A call that the store refuses has changed nothing.
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const KVStoreError& refused) {
          PyErr_SetString(static_cast<PyObject*>(type), refused.what());
        }
      },
      misuse.ptr());
}

// Calls of a node, for `with`: one at a time. Python looks for signals before it enters and in the
// block, not between, so that Ctrl-C never leaves a call for one under way, as it may with
// generators and pairs of acquire() and release().
class OneCall {
 public:
  void enter() {
    if (under_way_.exchange(true))
      throw std::logic_error(
          "the node is in another call; accepted: one at a time, by one thread, and none by a "
          "handler of a signal");
  }
  void leave() { under_way_ = false; }

 private:
  std::atomic<bool> under_way_ = false;
};

void add_one_call(nb::module_& module) {
  nb::class_<OneCall>(module, "OneCall")
      .def(nb::init<>())
      .def("__enter__", &OneCall::enter)
      .def("__exit__", [](OneCall& call, const nb::args&) { call.leave(); });
}

void add_config(nb::module_& module) {
  nb::class_<CollectiveConfig>(module, "CollectiveConfig")
      .def(nb::init<>())  // the defaults
      .def_prop_ro("engine",
                   [](const CollectiveConfig& config) { return config::name_of(config.engine); })
      .def_prop_ro("compression",
                   [](const CollectiveConfig& config) {
                     return config::name_in(config::compression_words, config.compression);
                   })
      .def_prop_ro("on_lost_rank",
                   [](const CollectiveConfig& config) {
                     return config::name_in(config::on_lost_rank_words, config.on_lost_rank);
                   })
      .def_ro("bucket_bytes", &CollectiveConfig::bucket_bytes)
      .def_ro("average_buffers", &CollectiveConfig::average_buffers)
      .def_ro("plaintext", &CollectiveConfig::plaintext)
      .def_prop_ro("start_wait_s", [](const CollectiveConfig& config) {
        return std::chrono::duration<double>(config.start_wait).count();
      });
  nb::class_<Config>(module, "Config")
      .def_ro("name", &Config::self)
      .def_ro("cluster", &Config::cluster)
      .def_prop_ro("file", [](const Config& config) { return config.file.string(); })
      .def_prop_ro("backend", [](const Config& config) { return config::name_of(config.backend); })
      .def_ro("collective", &Config::collective)
      .def_prop_ro("min_nodes", [](const Config& config) { return config.gossip.min_nodes; })
      .def_prop_ro("security_mode", [](const Config& config) { return config.security.mode; })
      .def("refuse", [](const Config& config, const std::string& key,
                        const std::string& problem) { fail_at_key(config, key, problem); })
      .def_prop_ro("rank", &Config::self_index)
      .def_prop_ro("size", [](const Config& config) { return config.nodes.size(); })
      .def_prop_ro("threads", [](const Config& config) { return node_threads(config); });
}

void add_trainer(nb::module_& module) {
  nb::class_<ShownNumbers>(module, "ShownNumbers").def(nb::init<>()).def("set", &ShownNumbers::set);
  nb::class_<Trainer>(module, "Trainer")
      .def("memory",
           [](const std::shared_ptr<Trainer>& trainer) {
             const auto bytes = trainer->memory();
             return bytes_of({trainer, bytes.data()}, bytes.size());
           })
      .def("offsets",
           [](const Trainer& trainer) {
             std::vector<std::uint64_t> offsets;
             for (std::size_t i = 0; i < trainer.manifest().tensors().size(); ++i)
               offsets.push_back(trainer.manifest().offset_of(i));
             return offsets;
           })
      .def("regions",
           [](const Trainer& trainer) {
             std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string, bool>> regions;
             for (const Region& region : trainer.manifest().regions())
               regions.emplace_back(region.offset, region.bytes, std::string(name_of(region.dtype)),
                                    region.rule == BlendRule::interpolate);
             return regions;
           })
      .def_prop_ro("exchange_bytes",
                   [](const Trainer& trainer) { return trainer.manifest().exchange_bytes(); })
      .def("mark", &Trainer::mark)
      .def("require_same", &Trainer::require_same)
      .def("restore",
           [](Trainer& trainer, const State& state) {
             trainer.restore({std::get<0>(state), std::get<1>(state)});
           })
      .def("start",
           [](const std::shared_ptr<Trainer>& trainer) {
             patiently<void>(trainer, [&trainer = *trainer] { trainer.start(); });
           })
      .def_prop_ro("place",
                   [](const Trainer& trainer) {
                     const Place place = trainer.place();
                     return std::tuple(place.rank, place.size);
                   })
      .def("update_send",
           [](const std::shared_ptr<Trainer>& trainer, double loss) {
             exchanging<void>(trainer, [&trainer = *trainer, loss] { trainer.update_send(loss); });
           })
      .def("update_wait",
           [](const std::shared_ptr<Trainer>& trainer, std::optional<double> loss) {
             return words_of(exchanging<StepReport>(
                 trainer, [&trainer = *trainer, loss] { return trainer.update_wait(loss); }));
           })
      .def("resume_state",
           [](const Trainer& trainer) {
             const ResumeState state = trainer.resume_state();
             return State(state.clock, state.own);
           })
      .def("show", &Trainer::show)
      .def("reload", &Trainer::reload, Released())
      .def("finish",
           [](const std::shared_ptr<Trainer>& trainer) {
             return words_of(patiently<FinishReport>(
                 trainer, [&trainer = *trainer] { return trainer.finish(); }));
           })
      .def("leave", &Trainer::leave, Released())
      .def_prop_ro("averages_gradients", &Trainer::averages_gradients)
      .def_prop_ro("given_up", [](Trainer& trainer) { return trainer.program().has_given_up(); })
      .def("keep", [](Trainer& trainer, nb::object object) {
        trainer.program().need(std::make_shared<nb::object>(std::move(object)));
      });
}

void add_data(nb::module_& module) {
  nb::class_<SharedCursor>(module, "SharedCursor")
      .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), nb::arg("batch"),
           nb::arg("end"), nb::arg("least"))
      .def_prop_ro("position", &SharedCursor::position)
      .def_prop_ro("end", &SharedCursor::end)
      .def("seek", &SharedCursor::seek)
      .def("advance", &SharedCursor::advance)
      .def("part", [](const SharedCursor& cursor, std::uint64_t rank, std::uint64_t size) {
        const ItemRange part = cursor.part(rank, size);
        return std::tuple(part.from, part.count);
      });
  module.def("crc32c", [](const nb::bytes& data) {
    return crc32c({static_cast<const std::byte*>(data.data()), data.size()});
  });
}

}  // namespace
}  // namespace dpwa::python

NB_MODULE(_core, module) {
  using namespace dpwa::python;
  nb::set_leak_warnings(false);  // parameters that live as long as the program hold their memory
  module.attr("version") = std::string(dpwa::version());
  add_errors(module);
  add_one_call(module);
  add_config(module);
  add_launch(module);
  add_trainer(module);
  add_collective(module);
  add_kvstore(module);
  add_store(module);
  module.def("make_trainer", &make_trainer, nb::arg("config"), nb::arg("tensors"),
             nb::arg("trained"), nb::arg("threads"), nb::arg("passes").none());
  add_data(module);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function([] { ProgramThread::drop_given_up(std::chrono::seconds(5)); }));
  module.def("warn",
             [](const std::string& text) { dpwa::log(dpwa::LogLevel::warn, "adapter", text); });
}
