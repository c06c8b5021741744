#include "bench/memory/passes.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "bench/memory/plain_blend.h"
#include "bench/values.h"
#include "dpwa/base/checksum.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr double factor = 0.25;

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

}  // namespace

Vectors::Vectors(std::size_t bytes, DType dtype, std::uint64_t seed)
    : parameters(bytes),
      peer(bytes),
      snapshots{AlignedBuffer(bytes), AlignedBuffer(bytes), AlignedBuffer(bytes)},
      staging(staging_bytes) {
  fill_with_values(parameters.bytes(), seed, dtype);
  fill_with_values(peer.bytes(), seed + 1, dtype);
  fill_with_values(staging.bytes(), seed + 2, dtype);
}

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

double rate_of(const Pass& pass, std::vector<Vectors>& threads, double seconds) {
  std::vector<double> rates(threads.size());
  std::atomic<std::size_t> waiting{threads.size()};
  const auto work = [&](std::size_t index) {
    Vectors& vectors = threads[index];
    pass.run(vectors);  // not counted: the threads start together
    for (--waiting; waiting > 0;) std::this_thread::yield();
    const auto begun = SteadyClock::now();
    std::chrono::duration<double> elapsed{};
    double bytes = 0;
    do {
      pass.run(vectors);
      bytes += static_cast<double>(vectors.parameters.bytes().size());
      elapsed = SteadyClock::now() - begun;
    } while (elapsed.count() < seconds);
    rates[index] = bytes / 1e9 / elapsed.count();
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads.size(); ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

}  // namespace dpwa::bench
