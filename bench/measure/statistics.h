#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/machine.h"

namespace dpwa::bench {

struct Range {
  double min = 0;
  double median = 0;
  double max = 0;
};

// The value below which a share `q` of the values lies: the nearest rank. 0 when there are none.
double quantile(std::vector<double> values, double q);
Range range_of(const std::vector<double>& values);
// (max - min) / median; 0 when the median is.
double spread_of(const Range& range);

// Time of all processors together since boot, in seconds.
struct ProcessorTime {
  double busy = 0;   // anything but idle and waiting for a disk; `steal` left out
  double steal = 0;  // taken by the host of a virtual machine
  double total = 0;
};

// From the text of /proc/stat; zeros where it is not as expected.
ProcessorTime parse_processor_time(std::string_view proc_stat, double ticks_per_second);
ProcessorTime processor_time();  // now

// Whether a measurement was disturbed.
struct Noise {
  double spread = 0;                 // of the windows, as spread_of
  double other_load = 0;             // share of all processors that others used
  double steal = 0;                  // share that the host took
  std::vector<std::string> reasons;  // why the machine counts as noisy; none: it was quiet
};

// `own`: processor seconds that the measurement itself used between the two moments.
Noise judge_noise(double spread, const ProcessorTime& before, const ProcessorTime& after,
                  double own);

// Watches over a measurement, which begins here, and judges it at its end.
class NoiseWatch {
 public:
  // Processor seconds of other processes of the measurement.
  void also_used(double seconds) { own_ += seconds; }
  Noise judge(double spread) const {
    return judge_noise(spread, before_, processor_time(), own_ + processor_seconds());
  }

 private:
  double own_ = -processor_seconds();
  const ProcessorTime before_ = processor_time();
};

}  // namespace dpwa::bench
