#include "dpwa/kvstore/slice_state.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa::kvstore {
namespace {

// No run gets there: versions can be counted on from any that comes from elsewhere.
constexpr std::uint64_t most_versions = std::uint64_t{1} << 62;

}  // namespace

void advance(std::map<std::string, Advance>& clocks, const Advance& by) {
  Advance& clock = clocks[by.worker.name];
  if (by.worker.incarnation > clock.worker.incarnation) clock = by;
  if (by.worker == clock.worker) clock.next = std::max(clock.next, by.next);
}

Copy copy_of(const SliceId& slice, const ValueSpec& spec, const SliceState& state) {
  Copy copy;
  copy.slice = slice;
  copy.spec = spec;
  copy.version = state.version;
  copy.stamp = state.stamp;
  copy.round = state.round;
  for (const auto& [name, clock] : state.clocks) copy.clocks.push_back(clock);
  copy.values = state.values;
  copy.optimizer = state.optimizer_options;
  copy.optimizer_steps = state.optimizer->steps();
  const auto arrays = state.optimizer->bytes();
  copy.optimizer_state.assign(arrays.begin(), arrays.end());
  copy.snapshot = state.snapshot;
  return copy;
}

std::optional<SliceState> state_of(Copy copy, std::uint64_t elements) {
  const DType dtype = copy.spec.dtype;
  if (copy.version >= most_versions) return std::nullopt;
  if (!copy.values || copy.values->size() != elements * size_of(dtype)) return std::nullopt;
  SliceState state;
  if (!copy.optimizer.empty()) {
    const auto options = decode_options(copy.optimizer);
    if (!options) return std::nullopt;
    auto restored = OptimizerState::restored(*options, dtype, elements, copy.optimizer_steps,
                                             copy.optimizer_state);
    if (!restored) return std::nullopt;
    state.optimizer = std::make_shared<OptimizerState>(*std::move(restored));
  }
  state.version = copy.version;
  state.stamp = copy.stamp;
  state.round = copy.round;
  state.snapshot = copy.snapshot;
  state.values = std::move(copy.values);
  state.optimizer_options = std::move(copy.optimizer);
  for (const Advance& clock : copy.clocks) state.clocks[clock.worker.name] = clock;
  return state;
}

void SliceState::change_values(DType dtype, const Forward& change, Bytes* spare) {
  DPWA_INVARIANT(values && optimizer, "a slice that is changed has values", version);
  DPWA_INVARIANT(
      change.gradient.size() / size_of(computed_in(dtype)) == values->size() / size_of(dtype),
      "a gradient has the elements of its slice", change.gradient.size(), values->size(), dtype);
  const auto options = decode_options(change.optimizer);
  if (!options && spare != nullptr && change.scale == 1 && computed_in(dtype) == dtype) {
    values = std::make_shared<Bytes>(std::move(*spare));
    return;
  }
  // Others may still read them: a server sends them, or writes them to a snapshot.
  if (values.use_count() > 1)
    values = std::make_shared<Bytes>(options ? copy_of(*values) : Bytes(values->size()));
  if (!options) return replace_values(dtype, *values, change.gradient, change.scale);
  if (optimizer.use_count() > 1) optimizer = std::make_shared<OptimizerState>(*optimizer);
  apply_update(*options, dtype, *values, change.gradient, change.scale, *optimizer);
  optimizer_options = change.optimizer;
}

void SliceState::apply(DType dtype, const Forward& change, Bytes* spare) {
  if (!change.gradient.empty()) change_values(dtype, change, spare);
  version = change.version;
  stamp = change.epoch;
  round = std::max(round, change.round);
  snapshot = std::max(snapshot, change.snapshot);
  for (const Advance& each : change.advances) advance(clocks, each);
}

}  // namespace dpwa::kvstore
