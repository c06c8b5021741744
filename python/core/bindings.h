#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "dpwa/rules/step_report.h"
#include "python/core/trainer.h"

// What the parts of dpwa._core share.
namespace dpwa::python {

using Released = nanobind::call_guard<nanobind::gil_scoped_release>;
using Bytes = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<1>>;

// An array that keeps its memory alive.
Bytes bytes_of(std::shared_ptr<std::byte> memory, std::size_t size);
nanobind::dict words_of(const StepReport& report);
nanobind::dict words_of(const FinishReport& report);

void add_collective(nanobind::module_& module);
void add_kvstore(nanobind::module_& module);
void add_launch(nanobind::module_& module);
void add_store(nanobind::module_& module);

// A call of the trainer that may wait for other nodes. Where the program gives up, the node leaves.
template <class Result>
Result patiently(const std::shared_ptr<Trainer>& trainer, std::function<Result()> call) {
  const auto waited = [&] {
    return trainer->program().call<Result>(
        std::move(call), [trainer] { trainer->break_off(); },
        [&trainer = *trainer] {
          try {
            trainer.leave();
          } catch (const std::exception&) {
            // It was not there yet, and the program does not wait any more.
          }
        },
        trainer);
  };
  if constexpr (std::is_void_v<Result>) {
    waited();
    trainer->settle();
  } else {
    Result result = waited();
    trainer->settle();
    return result;
  }
}

// One that waits where gradients are averaged. A thread for it costs as much as a blend.
template <class Result>
Result exchanging(const std::shared_ptr<Trainer>& trainer, std::function<Result()> call) {
  if (trainer->averages_gradients()) return patiently<Result>(trainer, std::move(call));
  const nanobind::gil_scoped_release released;
  return call();
}

}  // namespace dpwa::python
