#include "dpwa/wire/progress.h"

#include <cmath>

namespace dpwa::wire {

void write_progress(Writer& out, const Progress& progress) {
  out.u64(progress.version);
  out.u64(progress.lineage);
  out.f64(progress.clock);
  out.f64(progress.loss);
  out.f64(progress.weight);
  out.i64(progress.time_us);
}

Progress read_progress(Reader& in) {
  Progress progress;
  progress.version = in.u64();
  progress.lineage = in.u64();
  progress.clock = in.f64();
  progress.loss = in.f64();
  progress.weight = in.f64();
  progress.time_us = in.i64();
  return progress;
}

std::string_view progress_fault(const Progress& progress) {
  if (!std::isfinite(progress.clock) || progress.clock < 0) {
    return "clock of the snapshot is negative or not finite";
  }
  if (!std::isfinite(progress.weight) || progress.weight <= 0) {
    return "weight of the snapshot is not positive and finite";
  }
  return {};
}

}  // namespace dpwa::wire
