#include "dpwa/kvstore/slice_state.h"

#include <algorithm>

namespace dpwa::kvstore {

void advance(std::map<std::string, Advance>& clocks, const Advance& by) {
  Advance& clock = clocks[by.worker.name];
  if (by.worker.incarnation > clock.worker.incarnation) clock = by;
  if (by.worker == clock.worker) clock.next = std::max(clock.next, by.next);
}

void SliceState::change_values(DType dtype, const Forward& change, Bytes* spare) {
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
