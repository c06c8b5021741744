#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/collective/bytes_group.h"
#include "interpolation/kernels/dtype.h"

namespace dpwa::collective {

// Floating-point numbers beside the parameters of a model, such as statistics of BatchNorm, sent
// with every step: all members take them over from one, or their mean. One thread at a time.
class SharedBuffers {
 public:
  struct Place {
    DType type = DType::float32;
    std::span<std::byte> memory;
  };
  // The memory outlives this object.
  SharedBuffers(std::vector<Place> places, bool average);

  // `source`: the rank whose buffers all take over. They may be written again.
  void begin(const BytesGroup& group, int source);
  std::optional<CollectiveError> wait(const BytesGroup& group, const std::string& what);
  // Writes what has arrived into the buffers.
  void take(int members);

 private:
  // Neighbours of one type.
  struct Run {
    DType type = DType::float32;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  std::span<std::byte> part(const Run& run) {
    return std::span(moved_).subspan(run.offset, run.bytes);
  }

  std::vector<Place> places_;
  const bool average_;
  std::vector<Run> runs_;
  std::vector<std::byte> moved_;  // copies of all, side by side
  std::vector<BytesGroup::WorkPtr> works_;
};

// Multiplies the numbers, which are of a floating-point type. fp16 and bf16 are computed in fp32.
void scale(DType type, std::span<std::byte> numbers, double factor);

}  // namespace dpwa::collective
