#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dpwa/collective/gradient_exchange.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/type_names.h"
#include "python/core/asked.h"
#include "python/core/bindings.h"
#include "python/core/collective_trainer.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using Trained = std::shared_ptr<CollectiveTrainer>;

// TorchGradients and ArrayGradients of python/dpwa/gradients.py. Means are taken with the next step
// of the optimizer, or once the call has returned: each question to the thread of the program costs
// two changes of threads.
class PythonSource final : public collective::GradientSource {
 public:
  PythonSource(ProgramThread& program, nb::handle object) : asked_(program, object) {}

  void check() override {}  // the program has done it before the call
  void give(const std::vector<std::size_t>& parameters, double weight) override {
    asked_.tell("give", parameters, weight);
  }
  void take(const std::vector<std::size_t>& parameters, double divisor) override {
    taken_.emplace(parameters, divisor);
  }
  void clear() override {
    taken_.reset();
    asked_.tell("clear");
  }

  // By the thread of the program.
  void settle() {
    const auto taken = std::exchange(taken_, std::nullopt);
    if (taken) asked_.object().attr("take")(taken->first, taken->second);
  }

 private:
  const Asked asked_;
  std::optional<std::pair<std::vector<std::size_t>, double>> taken_;
};

PythonSource& source_of(CollectiveTrainer& trainer) {
  return static_cast<PythonSource&>(trainer.source());
}

// OptimizerState and ProgramUpdate there.
class PythonOptimizer final : public collective::OptimizerState {
 public:
  PythonOptimizer(CollectiveTrainer& trainer, nb::handle object)
      : source_(source_of(trainer)), asked_(trainer.program(), object) {}

  void step() const {
    asked_.use([this](nb::handle object) {
      source_.settle();
      object.attr("step")();
    });
  }

  collective::Signature words() const override {
    using Words = std::tuple<std::string, std::vector<std::tuple<std::string, std::string>>>;
    const auto [operation, settings] = asked_.ask<Words>("words");
    collective::Signature signature;
    signature.operation = operation;
    for (const auto& [name, value] : settings) signature.entries.push_back({name, value, true});
    return signature;
  }
  std::string state_words() const override { return asked_.ask<std::string>("state_words"); }
  std::string save() const override {
    std::string saved;
    asked_.use([&](nb::handle object) {
      const auto bytes = nb::cast<nb::bytes>(object.attr("save")());
      saved.assign(bytes.c_str(), bytes.size());
    });
    return saved;
  }
  void load(const std::string& saved) override {
    asked_.use(
        [&](nb::handle object) { object.attr("load")(nb::bytes(saved.data(), saved.size())); });
  }

 private:
  PythonSource& source_;
  const Asked asked_;
};

}  // namespace

void add_collective(nb::module_& module) {
  // `parameters`: type and number of elements of each.
  module.def("plan_buckets",
             [](const std::vector<std::pair<std::string, std::uint64_t>>& parameters,
                std::uint64_t bucket_bytes) {
               std::vector<TensorSpec> specs;
               for (const auto& [dtype, elements] : parameters)
                 specs.push_back({"", dtype_named(dtype), BlendRule::interpolate, {elements}});
               return collective::plan_buckets(specs, bucket_bytes);
             });
  nb::class_<CollectiveTrainer, Trainer>(module, "CollectiveTrainer")
      .def("set_source",
           [](CollectiveTrainer& trainer, nb::handle source) {
             auto own = std::make_unique<PythonSource>(trainer.program(), source);
             trainer.set_source(std::move(own), [&trainer] { source_of(trainer).settle(); });
           })
      .def("set_samples", [](CollectiveTrainer& trainer,
                             double samples) { trainer.replica().set_samples(samples); })
      .def("set_accumulating",
           [](CollectiveTrainer& trainer, bool on) { trainer.replica().set_accumulating(on); })
      .def("come",
           [](CollectiveTrainer& trainer, std::size_t parameter) -> nb::object {
             const auto full = trainer.replica().come(parameter);
             if (full.empty()) return nb::none();
             return nb::cast(std::tuple(std::vector<std::size_t>(full.begin(), full.end()),
                                        trainer.replica().weight()));
           })
      .def("send",
           [](CollectiveTrainer& trainer, const std::vector<std::size_t>& parameters) {
             trainer.replica().send(parameters);
           })
      .def_prop_ro("groups", [](CollectiveTrainer& trainer) { return trainer.replica().groups(); })
      .def("gradient",
           [](CollectiveTrainer& trainer, std::size_t parameter, std::size_t bytes) {
             return bytes_of(trainer.replica().place(parameter), bytes);
           })
      .def("average_gradients",
           [](const Trained& trainer) {
             patiently<void>(trainer, [&trainer = *trainer] { trainer.average_gradients(); });
           })
      .def("step",
           [](const Trained& trainer, nb::handle optimizer, double loss, bool skips) {
             return words_of(
                 patiently<StepReport>(trainer, [&trainer = *trainer, optimizer, loss, skips] {
                   PythonOptimizer state(trainer, optimizer);
                   return trainer.make_step(state, [&state] { state.step(); }, loss, skips);
                 }));
           })
      .def("share",
           [](CollectiveTrainer& trainer, const std::string& form, const Bytes& program) {
             trainer.share(form, {reinterpret_cast<std::byte*>(program.data()), program.size()});
           })
      .def("should_stop", &CollectiveTrainer::should_stop);
}

}  // namespace dpwa::python
