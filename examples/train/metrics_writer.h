#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/step_report.h"

namespace dpwa::train {

// NODE.metrics.jsonl: one JSON object a line. A step: t, step, loss, clock, outcome, peer, factor,
// staleness, distance, waited_ms, step_ms, compute_ms, publish_ms, blend_ms, bytes, pulls_ok,
// pulls_failed, lr; an evaluation: t, step, test_accuracy, test_loss. Both have the wall clock.
// Lines are collected in memory and written whole: a reader that follows the file sees only
// complete lines, delayed by at most 0.4 s of steps. Null: a number that is not finite, and what a
// step has no value for: that of a blend without one, and the parts of a step without a network.
// When the file cannot be written, that is logged once and no half line stays in it. Up to 4 MiB of
// lines then wait in memory for another try every 5 s; further lines are lost. A resumed run may
// repeat steps after its checkpoint: the later line counts. One owner, one thread.
class MetricsWriter {
 public:
  // Begins a new file, beside the one of an earlier process (NODE.metrics.1.jsonl and so on), or
  // continues after the last complete line of the old one. The file does not change before the
  // first line is written, so a second process of this node, which is refused, does no harm. Throws
  // ConfigError.
  MetricsWriter(const std::filesystem::path& file, bool append);
  ~MetricsWriter() { flush(); }
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // `seconds` of training so far; `now` decides whether it is time to flush.
  void step(double seconds, std::uint64_t step, double loss, double lr, double step_ms,
            const StepReport& report, TimePoint now);
  void evaluation(double seconds, std::uint64_t step, double accuracy, double loss);
  // Continues after the last complete line of the old file, as `append`. Before the first line.
  void keep_old_lines() { fresh_ = false; }
  void flush();
  // Flushes for the last time: false when lines were lost, which is logged.
  [[nodiscard]] bool close();

 private:
  int keep_earlier_lines();
  int write_lines();
  void drop_excess();
  void number(std::string_view key, double value);
  void whole(std::string_view key, std::uint64_t value);
  void text(std::string_view key, std::string_view value);
  void end_line();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::string buffer_;
  std::string error_;       // of the last write; empty when it took everything
  bool fresh_;              // nothing of what is in the file is to stay
  bool torn_ = true;        // the file may end in half a line
  std::uint64_t lost_ = 0;  // lines that no longer fitted into the buffer
  TimePoint flushed_{};
};

}  // namespace dpwa::train
