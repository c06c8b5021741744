#include "dpwa/gossip/host_parameters.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "dpwa/base/random.h"
#include "dpwa/snapshot/blocks.h"
#include "test/support/broken_invariant.h"

using namespace dpwa;

namespace {

using Bytes = std::vector<std::byte>;

// Every kind of tensor, none a multiple of 64 bytes, and `elements` in the largest.
Manifest manifest_of_every_kind(std::uint64_t elements) {
  std::vector<TensorSpec> tensors = {
      {"f32", DType::float32, BlendRule::interpolate, {elements}},
      {"f32b", DType::float32, BlendRule::interpolate, {7}},
      {"f64", DType::float64, BlendRule::interpolate, {5}},
      {"f16", DType::float16, BlendRule::interpolate, {33}},
      {"bf16", DType::bfloat16, BlendRule::interpolate, {elements / 3}},
      {"counter", DType::int64, BlendRule::maximum, {3}},
      {"flags", DType::uint8, BlendRule::maximum, {5}},
      {"frozen", DType::float32, BlendRule::carry, {elements / 5}},
      {"table", DType::int32, BlendRule::carry, {9}},
  };
  return Manifest(std::move(tensors));
}

// Small finite values of every dtype.
AlignedBuffer model(const Manifest& manifest, std::uint64_t seed) {
  AlignedBuffer buffer(manifest.total_bytes());
  Random random(seed);
  for (std::size_t i = 0; i < manifest.tensors().size(); ++i) {
    const TensorSpec& tensor = manifest.tensors()[i];
    for (std::uint64_t e = 0; e < tensor.elements(); ++e) {
      std::byte* at = buffer.bytes().data() + manifest.offset_of(i) + e * size_of(tensor.dtype);
      const double value = random.uniform(-1, 1);
      const auto single = static_cast<float>(value);
      const auto bits = static_cast<std::uint16_t>(random.next() & 0xbbff);  // fp16, bf16: below 2
      if (tensor.dtype == DType::float32) std::memcpy(at, &single, 4);
      if (tensor.dtype == DType::float64) std::memcpy(at, &value, 8);
      if (size_of(tensor.dtype) == 2) std::memcpy(at, &bits, 2);
      if (!is_floating_point(tensor.dtype)) *at = static_cast<std::byte>(random.next());
    }
  }
  return buffer;
}

Bytes bytes_of(const AlignedBuffer& buffer) {
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

// What a peer's model leaves behind within `range`, against our own.
struct Landed {
  Landed(const Manifest& manifest, std::span<const std::byte> own, std::span<const std::byte> peer,
         LandingMode mode, ByteRange range)
      : store(manifest.total_bytes(), 1 << 20, allocate), landing(manifest, allocate) {
    auto writer = store.begin();
    std::ranges::copy(own, writer->bytes().begin());
    store.publish(std::move(*writer), {});
    landing.begin(mode, store.latest(), {0, manifest.total_bytes()});
    landing.consume(0, peer);  // what is outside of the range is left over from before
    landing.begin(mode, store.latest(), range);
    landing.consume(range.offset, peer.subspan(range.offset, range.length));
  }
  static AlignedBuffer allocate(std::size_t bytes) { return AlignedBuffer(bytes); }
  SnapshotStore store;
  Landing landing;
};

std::vector<ByteRange> ranges_of(const Manifest& manifest) {
  std::vector<ByteRange> ranges = layer_blocks(manifest, 4);
  ranges.push_back({0, manifest.exchange_bytes()});
  ranges.push_back({0, manifest.total_bytes()});
  return ranges;
}

// Checks the passes of HostParameters against the plain ones for a model of that size.
void check_passes(const Manifest& manifest, const std::vector<ByteRange>& ranges,
                  const std::vector<double>& factors, unsigned max_threads) {
  const AlignedBuffer own = model(manifest, 1), peer = model(manifest, 2);
  const AlignedBuffer before = model(manifest, 3);
  AlignedBuffer memory(manifest.total_bytes()), snapshot(manifest.total_bytes());
  HostParameters parameters(manifest, memory.bytes(), max_threads);
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    for (const ByteRange range : ranges) {
      const Landed landed(manifest, own.bytes(), peer.bytes(), mode, range);
      for (const double factor : factors) {
        CAPTURE(manifest.total_bytes());
        CAPTURE(range.offset);
        CAPTURE(range.length);
        CAPTURE(factor);
        Bytes expected = bytes_of(before);
        blend_regions(manifest, range, expected, landed.landing.bytes(), mode, factor);

        std::ranges::copy(before.bytes(), memory.bytes().begin());
        std::ranges::fill(snapshot.bytes(), std::byte{0xa5});
        parameters.blend_and_copy_out(landed.landing, factor, snapshot.bytes());
        CHECK((bytes_of(memory) == expected));
        CHECK((bytes_of(snapshot) == expected));

        std::ranges::copy(before.bytes(), memory.bytes().begin());
        parameters.blend(landed.landing, factor);
        CHECK((bytes_of(memory) == expected));
        std::ranges::fill(snapshot.bytes(), std::byte{0xa5});
        parameters.copy_out(snapshot.bytes());
        CHECK((bytes_of(snapshot) == expected));
      }
    }
  }
}

}  // namespace

TEST_CASE("blending and copying in one pass equals doing both in turn, for every kind of tensor") {
  for (const std::uint64_t elements : {100, 10007}) {
    const Manifest manifest = manifest_of_every_kind(elements);
    check_passes(manifest, ranges_of(manifest), {0.3, 0.0, 1.0}, 1);
  }
}

TEST_CASE("a blend leaves counters as they are, and the final average takes the larger ones") {
  const Manifest manifest({{"w", DType::float32, BlendRule::interpolate, {4}},
                           {"batches", DType::int64, BlendRule::maximum, {}}});
  const auto count_in = [&](std::span<std::byte> memory) -> std::int64_t& {
    return *reinterpret_cast<std::int64_t*>(memory.data() + manifest.offset_of(1));
  };
  AlignedBuffer own(manifest.total_bytes()), peer(manifest.total_bytes());
  AlignedBuffer snapshot(manifest.total_bytes());
  count_in(own.bytes()) = 782;
  count_in(peer.bytes()) = 783;
  const Landed landed(manifest, own.bytes(), peer.bytes(), LandingMode::difference,
                      {0, manifest.total_bytes()});
  HostParameters parameters(manifest, own.bytes());
  parameters.blend(landed.landing, 0.5);
  CHECK(count_in(own.bytes()) == 782);
  parameters.blend_and_copy_out(landed.landing, 0.5, snapshot.bytes());
  CHECK(count_in(own.bytes()) == 782);
  CHECK(count_in(snapshot.bytes()) == 782);
  take_larger_counters(manifest, own.bytes(), peer.bytes());
  CHECK(count_in(own.bytes()) == 783);
  count_in(peer.bytes()) = 5;
  take_larger_counters(manifest, own.bytes(), peer.bytes());
  CHECK(count_in(own.bytes()) == 783);
}

TEST_CASE("it does with stores past the cache and pieces shared among threads") {
  const auto check_large = [](std::size_t bytes, unsigned max_threads) {
    const Manifest manifest = manifest_of_every_kind(bytes / 4 + 3);
    const auto ranges = ranges_of(manifest);
    check_passes(manifest, {ranges[1], ranges.back()}, {0.3}, max_threads);
  };
  check_large(HostParameters::stream_from_bytes, 1);
  check_large(HostParameters::threads_from_bytes, 3);
}

TEST_CASE("the bits do not depend on where the pieces of a pass begin") {
  const Manifest manifest = manifest_of_every_kind(10007);
  const AlignedBuffer own = model(manifest, 1), peer = model(manifest, 2);
  for (const LandingMode mode : {LandingMode::difference, LandingMode::values}) {
    for (const ByteRange range : ranges_of(manifest)) {
      const Landed landed(manifest, own.bytes(), peer.bytes(), mode, range);
      Bytes expected = bytes_of(model(manifest, 3));
      blend_regions(manifest, range, expected, landed.landing.bytes(), mode, 0.3);
      for (const std::uint64_t size : {64, 192, 4096, 70016}) {
        CAPTURE(range.offset);
        CAPTURE(size);
        AlignedBuffer memory = model(manifest, 3);
        AlignedBuffer snapshot(manifest.total_bytes());
        std::ranges::fill(snapshot.bytes(), std::byte{0xa5});
        for (std::uint64_t at = 0; at < manifest.total_bytes(); at += size) {
          const ByteRange piece = overlap({at, size}, {0, manifest.total_bytes()});
          blend_and_copy_regions(manifest, piece, memory.bytes(), landed.landing.bytes(), range,
                                 mode, 0.3, snapshot.bytes(), kernels::Stores::streaming);
        }
        CHECK((bytes_of(memory) == expected));
        CHECK((bytes_of(snapshot) == expected));
      }
    }
  }
}

TEST_CASE("a large model uses as many threads as are allowed and usable, a small one its own") {
  const auto threads_of = [](std::uint64_t bytes, unsigned max_threads) {
    AlignedBuffer memory(bytes);
    const Manifest manifest(
        std::vector<TensorSpec>{{"x", DType::float32, BlendRule::interpolate, {bytes / 4}}});
    return HostParameters(manifest, memory.bytes(), max_threads).threads();
  };
  constexpr auto large = HostParameters::threads_from_bytes;
  CHECK(threads_of(large, 1) == 1);
  CHECK(threads_of(large - 64, 64) == 1);
  std::size_t usable = 0;
  std::size_t pinned = 0;
  std::thread([&] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    usable = threads_of(large, 64);
    CHECK(usable == std::min(64, CPU_COUNT(&set)));
    const int processor = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
    pinned = threads_of(large, 64);
  }).join();
  CHECK(usable >= 1);
  CHECK(pinned == 1);
}

TEST_CASE("parameters in memory of another size are a defect") {
  const Manifest manifest({{"weight", DType::float32, BlendRule::interpolate, {32}}});
  Bytes memory(64);
  CHECK(test::breaks("the memory of the parameters is that of the manifest",
                     [&] { HostParameters(manifest, memory, 1); }));
}
