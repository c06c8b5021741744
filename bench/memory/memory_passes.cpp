#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measurers.h"
#include "bench/memory/plain_blend.h"
#include "bench/values.h"
#include "dpwa/base/checksum.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "interpolation/kernels/dtype.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

constexpr double factor = 0.25;

// The memory of one thread: vectors of equal length out of cache, and a staging buffer in it.
struct Vectors {
  Vectors(DType type, std::size_t bytes, std::uint64_t seed)
      : dtype(type),
        parameters(bytes),
        peer(bytes),
        snapshots{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)},
        staging(staging_bytes) {
    fill_with_values(parameters.bytes(), seed, dtype);
    fill_with_values(peer.bytes(), seed + 1, dtype);
    fill_with_values(staging.bytes(), seed + 2, dtype);
  }

  void copy_to(AlignedBuffer& to) const {
    std::memcpy(to.bytes().data(), parameters.bytes().data(), parameters.bytes().size());
  }
  AlignedBuffer& landing() { return snapshots[2]; }

  static constexpr std::size_t staging_bytes = 512 << 10;
  const DType dtype;
  AlignedBuffer parameters;
  AlignedBuffer peer;
  AlignedBuffer snapshots[3];  // the last one doubles as the landing
  AlignedBuffer staging;
  std::size_t next_snapshot = 0;
};

// Calls `use` with piece after piece of a vector and as much of the staging buffer, as chunks
// arrive in one.
template <class Use>
void by_staging(Vectors& v, AlignedBuffer& vector, const Use& use) {
  const auto bytes = vector.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += Vectors::staging_bytes) {
    const std::size_t count = std::min(Vectors::staging_bytes, bytes.size() - at);
    use(bytes.subspan(at, count), std::as_const(v.staging).bytes().first(count), at);
  }
}

// The passes of scripts/lib/bench_memory.py, which says what they are.
struct Pass {
  std::string_view name;
  void (*run)(Vectors& v);
};
constexpr Pass passes[] = {
    {"memcpy", [](Vectors& v) { v.copy_to(v.snapshots[0]); }},
    {"publish_copy", [](Vectors& v) { v.copy_to(v.snapshots[v.next_snapshot++ % 3]); }},
    {"new_buffer",
     [](Vectors& v) {
       plain_blend(v.snapshots[0].bytes(), v.parameters.bytes(), v.peer.bytes(),
                   static_cast<float>(factor));
     }},
    {"plain_difference",
     [](Vectors& v) {
       plain_difference(v.landing().bytes(), v.peer.bytes(), v.parameters.bytes());
     }},
    {"checksum",
     [](Vectors& v) {
       static std::atomic<std::uint32_t> sink;
       sink = crc32c(v.parameters.bytes());
     }},
    {"delta",
     [](Vectors& v) { kernels::delta(v.dtype, v.parameters.bytes(), v.peer.bytes(), factor); }},
    {"lerp",
     [](Vectors& v) { kernels::lerp(v.dtype, v.parameters.bytes(), v.peer.bytes(), factor); }},
    {"lerp_hot",
     [](Vectors& v) {
       by_staging(v, v.parameters, [&](auto part, auto staged, std::size_t) {
         kernels::lerp(v.dtype, part, staged, factor);
       });
     }},
    {"land_difference",
     [](Vectors& v) {
       kernels::land_difference(v.dtype, v.landing().bytes(), v.peer.bytes(), v.parameters.bytes());
     }},
    {"land_difference_hot", [](Vectors& v) {
       by_staging(v, v.landing(), [&](auto part, auto staged, std::size_t at) {
         kernels::land_difference(v.dtype, part, staged,
                                  v.parameters.bytes().subspan(at, part.size()),
                                  kernels::Stores::streaming);
       });
     }}};

DType dtype_named(const std::string& name) {
  for (const DType one : {DType::float64, DType::float16, DType::bfloat16})
    if (name_of(one) == name) return one;
  return DType::float32;
}

// Passes over vectors, by threads of which each has vectors of its own.
// Job: {"bytes": of a vector, all threads together, "threads", "dtype"}
//   -> {"do": the name of a pass, "seconds"}  <- {"threads": [{"bytes", "ns"}, ...]}
class MemoryPasses : public Measurer {
 public:
  explicit MemoryPasses(const Json& job) {
    const auto threads = job.at("threads").get<std::size_t>();
    const std::size_t bytes = job.at("bytes").get<std::size_t>() / threads / 64 * 64;
    for (std::size_t i = 0; i < threads; ++i)
      vectors_.emplace_back(dtype_named(job.at("dtype")), bytes, i);
  }

  Json answer(const Json& command) override {
    const auto pass = std::ranges::find(passes, command.at("do").get<std::string>(), &Pass::name);
    if (pass == std::end(passes)) throw std::invalid_argument("unknown pass");
    const std::chrono::duration<double> length(command.at("seconds").get<double>());
    Json results(vectors_.size(), Json::object());
    std::atomic<std::size_t> waiting{vectors_.size()};
    const auto work = [&](std::size_t index) {
      Vectors& vectors = vectors_[index];
      pass->run(vectors);  // not counted: the threads start together
      for (--waiting; waiting > 0;) std::this_thread::yield();
      const auto begun = SteadyClock::now();
      std::uint64_t bytes = 0;
      std::int64_t took = 0;
      do {
        pass->run(vectors);
        bytes += vectors.parameters.bytes().size();
        took = nanoseconds_since(begun);
      } while (std::chrono::nanoseconds(took) < length);
      results[index] = {{"bytes", bytes}, {"ns", took}};
    };
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < vectors_.size(); ++i) others.emplace_back(work, i);
    work(0);
    for (std::thread& thread : others) thread.join();
    return {{"threads", results}};
  }

 private:
  std::vector<Vectors> vectors_;
};

}  // namespace

std::unique_ptr<Measurer> make_memory_passes(const Json& job) {
  return std::make_unique<MemoryPasses>(job);
}

}  // namespace dpwa::bench
