#include "dpwa/collective/shared_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interpolation/kernels/kernels.h"

namespace dpwa::collective {

SharedBuffers::SharedBuffers(std::vector<Place> places, bool average)
    : places_(std::move(places)), average_(average) {
  std::ranges::stable_sort(places_, {}, &Place::type);
  for (const Place& place : places_) {
    if (runs_.empty() || runs_.back().type != place.type)
      runs_.push_back({place.type, moved_.size(), 0});
    runs_.back().bytes += place.memory.size();
    moved_.resize(moved_.size() + place.memory.size());
  }
}

void SharedBuffers::begin(const BytesGroup& group, int source) {
  works_.clear();
  if (moved_.empty()) return;
  std::byte* to = moved_.data();
  for (const Place& place : places_) to = std::ranges::copy(place.memory, to).out;
  if (average_) {
    for (const Run& run : runs_) works_.push_back(group.begin_sum(part(run), run.type));
  } else {
    works_.push_back(group.begin_broadcast(moved_, source));
  }
}

std::optional<CollectiveError> SharedBuffers::wait(const BytesGroup& group,
                                                   const std::string& what) {
  std::optional<CollectiveError> failure;
  for (const auto& work : std::exchange(works_, {})) {
    auto problem = group.wait(work, what);
    if (!failure) failure = std::move(problem);
  }
  return failure;
}

void SharedBuffers::take(int members) {
  if (average_)
    for (const Run& run : runs_) scale(run.type, part(run), 1.0 / members);
  const std::byte* from = moved_.data();
  for (const Place& place : places_) {
    std::copy_n(from, place.memory.size(), place.memory.data());
    from += place.memory.size();
  }
}

void scale(DType type, std::span<std::byte> numbers, double factor) {
  kernels::delta(type, numbers, numbers, factor - 1);
}

}  // namespace dpwa::collective
