#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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
  Vectors(std::size_t bytes, DType dtype, std::uint64_t seed);

  static constexpr std::size_t staging_bytes = 512 << 10;

  AlignedBuffer parameters;
  AlignedBuffer peer;
  AlignedBuffer snapshots[3];  // the last one doubles as the landing
  AlignedBuffer staging;
  std::size_t next_snapshot = 0;
};

// One pass over the vectors.
struct Pass {
  std::string name;
  std::string meaning;  // for people
  DType dtype;
  std::function<void(Vectors&)> run;
};

void copy(AlignedBuffer& to, const AlignedBuffer& from) {
  std::memcpy(to.bytes().data(), from.bytes().data(), from.bytes().size());
}

AlignedBuffer& next_snapshot(Vectors& vectors) {
  return vectors.snapshots[vectors.next_snapshot++ % 3];
}

// Calls `use` with the offset and size of piece after piece, as chunks arrive in a staging buffer.
template <class Use>
void by_staging(const Vectors& vectors, const Use& use) {
  const std::size_t bytes = vectors.parameters.bytes().size();
  for (std::size_t at = 0; at < bytes; at += Vectors::staging_bytes)
    use(at, std::min(Vectors::staging_bytes, bytes - at));
}

void add_dtype_passes(DType dtype, std::vector<Pass>& passes) {
  passes.push_back({"delta", "blend in place, difference out of cache", dtype, [dtype](Vectors& v) {
                      kernels::delta(dtype, v.parameters.bytes(), v.peer.bytes(), factor);
                    }});
  passes.push_back({"lerp", "blend in place, peer out of cache", dtype, [dtype](Vectors& v) {
                      kernels::lerp(dtype, v.parameters.bytes(), v.peer.bytes(), factor);
                    }});
  passes.push_back({"lerp_hot", "blend in place, peer in cache", dtype, [dtype](Vectors& v) {
                      by_staging(v, [&](std::size_t at, std::size_t count) {
                        kernels::lerp(dtype, v.parameters.bytes().subspan(at, count),
                                      v.staging.bytes().first(count), factor);
                      });
                    }});
  passes.push_back({"land_difference", "land, peer out of cache", dtype, [dtype](Vectors& v) {
                      kernels::land_difference(dtype, v.snapshots[2].bytes(), v.peer.bytes(),
                                               v.parameters.bytes());
                    }});
  passes.push_back(
      {"land_difference_hot", "land past the cache, peer in cache", dtype, [dtype](Vectors& v) {
         by_staging(v, [&](std::size_t at, std::size_t count) {
           kernels::land_difference(
               dtype, v.snapshots[2].bytes().subspan(at, count), v.staging.bytes().first(count),
               v.parameters.bytes().subspan(at, count), kernels::Stores::streaming);
         });
       }});
}

Vectors::Vectors(std::size_t bytes, DType dtype, std::uint64_t seed)
    : parameters(bytes),
      peer(bytes),
      snapshots{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)},
      staging(staging_bytes) {
  fill_with_values(parameters.bytes(), seed, dtype);
  fill_with_values(peer.bytes(), seed + 1, dtype);
  fill_with_values(staging.bytes(), seed + 2, dtype);
}

// All passes of docs/data/benchmark.csv, "Memory limits".
std::vector<Pass> memory_passes() {
  std::vector<Pass> passes;
  passes.push_back(
      {"memcpy", "copy", DType::float32, [](Vectors& v) { copy(v.snapshots[0], v.parameters); }});
  passes.push_back({"publish_copy", "copy into the next of three snapshot buffers", DType::float32,
                    [](Vectors& v) { copy(next_snapshot(v), v.parameters); }});
  passes.push_back(
      {"new_buffer", "blend into another buffer, plain loop", DType::float32, [](Vectors& v) {
         plain_blend(v.snapshots[0].bytes(), v.parameters.bytes(), v.peer.bytes(),
                     static_cast<float>(factor));
       }});
  passes.push_back(
      {"plain_difference", "land without statistics, plain loop", DType::float32, [](Vectors& v) {
         plain_difference(v.snapshots[2].bytes(), v.peer.bytes(), v.parameters.bytes());
       }});
  passes.push_back({"checksum", "CRC32C", DType::float32, [](Vectors& v) {
                      static std::atomic<std::uint32_t> sink;
                      sink = crc32c(v.parameters.bytes());
                    }});
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    add_dtype_passes(dtype, passes);
  }
  return passes;
}

// The passes of one dtype over vectors of so many threads, each on vectors of its own.
// Job: {"bytes": of a vector, all threads together, "threads", "dtype"}
// Facts: {"passes": [{"name", "meaning"}]}
//   -> {"do": "pass", "index", "seconds"}  <- {"threads": [{"bytes", "ns"}, ...]}
class MemoryPasses : public Measurer {
 public:
  explicit MemoryPasses(const Json& job) : passes_(memory_passes()) {
    std::erase_if(passes_,
                  [&](const Pass& pass) { return job.at("dtype") != name_of(pass.dtype); });
    const auto threads = job.at("threads").get<std::size_t>();
    const std::size_t bytes = job.at("bytes").get<std::size_t>() / threads / 64 * 64;
    for (std::size_t i = 0; i < threads; ++i) vectors_.emplace_back(bytes, passes_.at(0).dtype, i);
  }

  Json facts() const override {
    Json passes = Json::array();
    for (const Pass& pass : passes_)
      passes.push_back({{"name", pass.name}, {"meaning", pass.meaning}});
    return {{"passes", passes}};
  }

  Json answer(const Json& command) override {
    const Pass& pass = passes_.at(command.at("index").get<std::size_t>());
    const std::chrono::duration<double> length(command.at("seconds").get<double>());
    Json results = Json::array();
    for (std::size_t i = 0; i < vectors_.size(); ++i) results.push_back({{"bytes", 0}, {"ns", 0}});
    std::atomic<std::size_t> waiting{vectors_.size()};
    const auto work = [&](std::size_t index) {
      Vectors& vectors = vectors_[index];
      pass.run(vectors);  // not counted: the threads start together
      for (--waiting; waiting > 0;) std::this_thread::yield();
      const auto begun = SteadyClock::now();
      std::uint64_t bytes = 0;
      std::int64_t took = 0;
      do {
        pass.run(vectors);
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
  std::vector<Pass> passes_;
  std::vector<Vectors> vectors_;
};

}  // namespace

std::unique_ptr<Measurer> make_memory_passes(const Json& job) {
  return std::make_unique<MemoryPasses>(job);
}

}  // namespace dpwa::bench
