#include "python/core/bindings.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <memory>
#include <utility>

namespace nb = nanobind;

namespace dpwa::python {

Bytes bytes_of(std::shared_ptr<std::byte> memory, std::size_t size) {
  std::byte* const data = memory.get();
  auto owner = std::make_unique<std::shared_ptr<std::byte>>(std::move(memory));
  const nb::capsule capsule(owner.get(), [](void* held) noexcept {
    delete static_cast<std::shared_ptr<std::byte>*>(held);
  });
  static_cast<void>(owner.release());
  return Bytes(data, {size}, capsule);
}

nb::dict words_of(const StepReport& report) {
  nb::dict words;
  const auto outcome = to_string(report.outcome);
  words["outcome"] = nb::str(outcome.data(), outcome.size());
  words["made"] = report.made;
  words["peer"] = report.peer;
  words["factor"] = report.factor;
  words["staleness"] = report.staleness;
  words["distance"] = report.distance;
  words["clipped"] = report.clipped;
  words["refused"] = report.refused;
  words["bytes"] = report.bytes;
  words["waited"] = std::chrono::duration<double>(report.waited).count();
  words["clock"] = report.clock;
  words["participants"] = report.participants;
  words["block"] = report.block;
  words["blocks"] = report.blocks;
  words["same_host"] = report.same_host;
  words["pulls_ok"] = report.pulls_ok;
  words["pulls_failed"] = report.pulls_failed;
  words["sent"] = report.sent;
  return words;
}

nb::dict words_of(const FinishReport& report) {
  nb::dict words;
  words["averaged"] = report.averaged;
  words["participants"] = report.participants;
  words["distance_to_average"] = report.distance_to_average;
  words["enough"] = report.enough;
  words["lost_final_model"] = report.lost_final_model;
  return words;
}

}  // namespace dpwa::python
