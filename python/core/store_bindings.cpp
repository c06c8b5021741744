#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/config/open_log.h"
#include "dpwa/kvworker/dist_store.h"
#include "dpwa/kvworker/error.h"
#include "dpwa/kvworker/state_file.h"
#include "dpwa/log/log.h"
#include "dpwa/snapshot/type_names.h"
#include "python/core/bindings.h"
#include "python/core/optimizer_words.h"
#include "python/core/program_thread.h"

namespace nb = nanobind;

namespace dpwa::python {
namespace {

using kvstore::Call;
using kvstore::DistStore;
using kvstore::ValueSpec;
using PlainKey = std::variant<std::int64_t, std::string>;
// A key, and the place, type and shape of an array in the order of its shape. The package keeps the
// array until the call is over.
using Array = std::tuple<PlainKey, std::uintptr_t, std::string, std::vector<std::uint64_t>>;
using Arrays = std::vector<Array>;

kvstore::Key key_of(const PlainKey& key) {
  return std::visit([](const auto& plain) { return kvstore::Key(plain); }, key);
}

ValueSpec spec_of(const Array& array) {
  const ValueSpec spec{dtype_named(std::get<2>(array)), std::get<3>(array)};
  if (const auto problem = spec_problem(spec))
    throw KVStoreError("key " + key_of(std::get<0>(array)).text() + ": the array " + *problem);
  return spec;
}

// A store, whose calls that may wait end for the program at Ctrl-C. It is not used afterwards.
class Store {
 public:
  explicit Store(const Config& config) : config_(config) {
    if (is_local(config.kvstore.type))
      fail_at_key(config, "kvstore.type",
                  "a store in Python needs servers; accepted: dist_sync, dist_async, dist_ssp");
    if (!log_is_open()) open_log(config).use();
  }

  void open() {
    const auto broken_off = std::make_shared<std::atomic<bool>>(false);
    own_ = program_->call<std::shared_ptr<DistStore>>(
        [config = config_, broken_off] { return std::make_shared<DistStore>(config, broken_off); },
        [broken_off] { *broken_off = true; }, [] {}, {});
  }
  template <class Result>
  Result call(std::function<Result(DistStore&)> work) {
    own();
    return program_->call<Result>([own = own_, work = std::move(work)] { return work(*own); },
                                  [own = own_] { own->break_off(); }, [] {}, own_);
  }
  const std::shared_ptr<DistStore>& shared() const { return own_; }
  DistStore& own() const {
    if (!own_ || program_->has_given_up())
      throw std::logic_error("the store was closed, or one of its calls was interrupted");
    return *own_;
  }
  // A handle of the program may keep the memory for longer.
  void leave() {
    if (own_ && !program_->has_given_up()) own_->leave();
    own_.reset();
  }

 private:
  const Config config_;
  std::shared_ptr<ProgramThread> program_ = std::make_shared<ProgramThread>();
  std::shared_ptr<DistStore> own_;  // what has begun keeps it
};

struct Handle {
  Store& store;  // kept by the package
  std::shared_ptr<DistStore> own;
  std::shared_ptr<Call> call;
};

std::vector<kvstore::Pushed> pushed(const Arrays& arrays) {
  std::vector<kvstore::Pushed> all;
  for (const Array& array : arrays) {
    const auto* const data = reinterpret_cast<const std::byte*>(std::get<1>(array));
    all.push_back({key_of(std::get<0>(array)), spec_of(array), [data](std::span<std::byte> to) {
                     if (!to.empty()) std::memcpy(to.data(), data, to.size());
                   }});
  }
  return all;
}

std::vector<kvstore::Wanted> wanted(const Arrays& arrays) {
  std::vector<kvstore::Wanted> all;
  for (const Array& array : arrays) {
    const ValueSpec spec = spec_of(array);
    const std::span to(reinterpret_cast<std::byte*>(std::get<1>(array)), spec.bytes());
    all.push_back({key_of(std::get<0>(array)), spec, [to](const kvstore::Slices& slices) {
                     return to.empty() || kvstore::copy_slices(slices, to);
                   }});
  }
  return all;
}

void init(Store& store, const Arrays& arrays) {
  std::vector<kvstore::First> first;
  for (const Array& array : arrays) {
    const ValueSpec spec = spec_of(array);
    const auto* const data = reinterpret_cast<const std::byte*>(std::get<1>(array));
    first.push_back({key_of(std::get<0>(array)), spec, {data, spec.bytes()}});
  }
  store.call<void>([first](DistStore& own) { own.init(first); });
}

Handle begin(Store& store, std::function<std::unique_ptr<Call>(DistStore&)> work) {
  std::shared_ptr<Call> call = store.call<std::unique_ptr<Call>>(std::move(work));
  return {store, store.shared(), std::move(call)};
}

}  // namespace

void add_store(nb::module_& module) {
  nb::class_<Handle>(module, "Handle")
      .def("done",
           [](const Handle& handle) {
             handle.store.own();
             return handle.call->done();
           })
      .def("wait", [](const Handle& handle) {
        return handle.store.call<kvstore::Versions>(
            [call = handle.call](DistStore&) { return call->wait(); });
      });
  nb::class_<Store>(module, "Store")
      .def("__init__", [](Store* store, const Config& config) { new (store) Store(config); })
      .def("open", &Store::open)
      .def("leave", &Store::leave, Released())
      .def_prop_ro("type", [](Store& store) { return std::string(store.own().type()); })
      .def_prop_ro("rank", [](Store& store) { return store.own().rank(); })
      .def_prop_ro("num_workers", [](Store& store) { return store.own().num_workers(); })
      .def("num_dead_node",
           [](Store& store, double seconds) {
             return store.own().num_dead_node(
                 std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
           })
      .def("dropped_pushes", [](Store& store) { return store.own().dropped_pushes(); })
      .def("barrier", [](Store& store) { store.call<void>([](DistStore& own) { own.barrier(); }); })
      .def("reload_security", [](Store& store) { store.own().reload_security(); })
      .def("spec",
           [](Store& store, const PlainKey& key) {
             const kvstore::Key own = key_of(key);
             const ValueSpec& spec =
                 store.own().specs().at(own, store.own().specs().call_of("row_sparse_pull", own));
             return std::tuple(std::string(name_of(spec.dtype)), spec.shape);
           })
      .def("check_rows",
           [](Store& store, const PlainKey& key, std::int64_t lowest, std::int64_t highest) {
             store.own().specs().check_rows(key_of(key), lowest, highest);
           })
      .def("init", &init)
      .def("push",
           [](Store& store, const Arrays& arrays, int priority) {
             return begin(store, [values = pushed(arrays), priority](DistStore& own) {
               return own.push(values, priority);
             });
           })
      .def("pull",
           [](Store& store, const Arrays& outs, int priority) {
             return begin(store, [values = wanted(outs), priority](DistStore& own) {
               return own.pull(values, priority);
             });
           })
      .def("pushpull",
           [](Store& store, const Arrays& arrays, const Arrays& outs, int priority) {
             return begin(store,
                          [values = pushed(arrays), to = wanted(outs), priority](DistStore& own) {
                            return own.pushpull(values, to, priority);
                          });
           })
      .def("set_optimizer",
           [](Store& store, const OptimizerWords& words) {
             store.own().set_optimizer(options_named(words));
           })
      .def("set_compression",
           [](Store& store, const std::string& type, double threshold) {
             kvstore::CompressionOptions options;
             options.threshold = threshold;
             for (const auto known : {kvstore::Compression::none, kvstore::Compression::fp16,
                                      kvstore::Compression::two_bit}) {
               if (name_of(known) != type) continue;
               options.type = known;
               return store.own().set_compression(options);
             }
             throw KVStoreError("compression '" + type + "'; accepted: none, fp16, 2bit");
           })
      .def(
          "save_optimizer_states",
          [](Store& store, const std::string& file) {
            store.call<void>([file](DistStore& own) { kvstore::write_states(file, own.states()); });
          })
      .def("load_optimizer_states", [](Store& store, const std::string& file) {
        store.call<void>([file](DistStore& own) {
          kvstore::load_states(file,
                               [&own](const kvstore::SavedStates& states) { own.load(states); });
        });
      });
}

}  // namespace dpwa::python
