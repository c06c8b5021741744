#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dpwa/snapshot/type_names.h"
#include "python/core/asked.h"
#include "python/core/bindings.h"
#include "python/core/kvstore_trainer.h"
#include "python/core/optimizer_words.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using kvstore::OptimizerOptions;
using kvstore::OptimizerState;
using kvstore::OptimizerTerms;
using Trained = std::shared_ptr<KvstoreTrainer>;

// What an optimizer is: the kind and the numbers of each group, the group of each trained parameter
// (-1: none), and the identities of all its parameters.
using Words =
    std::tuple<std::vector<OptimizerWords>, std::vector<int>, std::vector<std::uintptr_t>>;

struct Known {
  explicit Known(const Words& words) {
    for (const std::uintptr_t each : std::get<2>(words))
      stepped.push_back(reinterpret_cast<const void*>(each));
    try {
      for (const OptimizerWords& group : std::get<0>(words)) {
        const kvstore::OptionsBytes form = encode(options_named(group));
        terms.groups.emplace_back(form.begin(), form.end());
      }
    } catch (const KVStoreError&) {
      unknown = std::current_exception();
    }
    for (const int group : std::get<1>(words))
      terms.group_of.push_back(group < 0 ? std::nullopt : std::optional<std::size_t>(group));
  }

  OptimizerTerms terms;
  std::exception_ptr unknown;
  std::vector<const void*> stepped;
};

// StoreOptimizer of python/dpwa/store_worker.py, which outlives the use of it.
class PythonOptimizer final : public kvstore::WorkerOptimizer {
 public:
  PythonOptimizer(ProgramThread& program, nb::handle object)
      : known_(std::make_shared<const Known>(nb::cast<Words>(object.attr("words")()))),
        asked_(program, object) {}

  OptimizerTerms terms() const override {
    if (known_->unknown) std::rethrow_exception(known_->unknown);
    return known_->terms;
  }
  // Steps, and the arrays one after the other.
  OptimizerState state(std::size_t trained, const OptimizerOptions& options,
                       bool used) const override {
    std::uint64_t steps = 0;
    std::vector<std::byte> arrays;
    DType dtype = DType::float32;
    std::uint64_t elements = 0;
    asked_.use([&](nb::handle object) {
      const auto [own, bytes, type, size] =
          nb::cast<std::tuple<std::uint64_t, nb::bytes, std::string, std::uint64_t>>(
              object.attr("state")(trained, used));
      steps = own;
      const auto* data = static_cast<const std::byte*>(bytes.data());
      arrays.assign(data, data + bytes.size());
      dtype = dtype_named(type);
      elements = size;
    });
    if (steps == 0) return {options, dtype, elements};
    auto state = OptimizerState::restored(options, dtype, elements, steps, arrays);
    if (!state)
      throw std::runtime_error("the optimizer's state has another size than its numbers say");
    return *std::move(state);
  }
  void step() override { asked_.tell("step"); }
  std::vector<const void*> stepped() const override { return known_->stepped; }
  std::unique_ptr<kvstore::OptimizerContent> copy() const override {
    return std::make_unique<PythonOptimizer>(*this);
  }
  void give(std::size_t trained, const OptimizerOptions&, const OptimizerState& state) override {
    const auto bytes = state.bytes();
    asked_.use([&](nb::handle object) {
      object.attr("give")(trained, state.steps(), nb::bytes(bytes.data(), bytes.size()));
    });
  }
  void forget() override { asked_.tell("forget"); }

 private:
  std::shared_ptr<const Known> known_;
  Asked asked_;
};

kvstore::Worker::Loss reading(double loss) {
  return [loss] { return loss; };
}

}  // namespace

void add_kvstore(nb::module_& module) {
  nb::class_<KvstoreTrainer, Trainer>(module, "KvstoreTrainer")
      .def_prop_ro("updates_on_servers",
                   [](KvstoreTrainer& trainer) { return trainer.worker().updates_on_servers(); })
      .def("set_samples",
           [](KvstoreTrainer& trainer, double samples) { trainer.worker().set_samples(samples); })
      .def("set_accumulating",
           [](KvstoreTrainer& trainer, bool on) { trainer.worker().set_accumulating(on); })
      .def("set_gradients",
           [](KvstoreTrainer& trainer, const std::map<std::size_t, std::uintptr_t>& gradients) {
             for (const auto& [trained, place] : gradients)
               trainer.model().set_gradient(trained, reinterpret_cast<std::byte*>(place));
           })
      .def("set_frozen",
           [](KvstoreTrainer& trainer, std::vector<bool> frozen) {
             trainer.model().set_frozen(std::move(frozen));
           })
      .def("fired",
           [](KvstoreTrainer& trainer, std::size_t trained, std::uintptr_t place) {
             trainer.model().set_gradient(trained, reinterpret_cast<std::byte*>(place));
             trainer.worker().fired(trained);
             return trainer.model().is_sent(trained);
           })
      .def("take_changes",
           [](KvstoreTrainer& trainer) {
             const kvstore::HostModel::Changes changes = trainer.model().take_changes();
             return std::tuple(changes.are_means, changes.dropped, changes.made);
           })
      .def("made",
           [](const Trained& trainer, std::size_t trained) {
             const auto bytes = trainer->model().made(trained);
             return bytes_of({trainer, bytes.data()}, bytes.size());
           })
      .def("set_optimizer",
           [](KvstoreTrainer& trainer, nb::handle optimizer) {
             trainer.worker().set_optimizer(PythonOptimizer(trainer.program(), optimizer));
           })
      .def("average_gradients",
           [](const Trained& trainer) {
             patiently<void>(trainer,
                             [&trainer = *trainer] { trainer.worker().average_gradients(); });
           })
      .def("step",
           [](const Trained& trainer, nb::handle optimizer, double loss, bool skips) {
             PythonOptimizer own(trainer->program(), optimizer);
             return words_of(
                 patiently<StepReport>(trainer, [&trainer = *trainer, own, loss, skips]() mutable {
                   return trainer.worker().step(own, reading(loss), skips);
                 }));
           })
      .def("take_optimizer_state", [](const Trained& trainer, nb::handle optimizer) {
        PythonOptimizer own(trainer->program(), optimizer);
        return patiently<bool>(trainer, [&trainer = *trainer, own]() mutable {
          return trainer.worker().take_optimizer_state(own);
        });
      });
}

}  // namespace dpwa::python
