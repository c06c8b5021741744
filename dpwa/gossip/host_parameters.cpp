#include "dpwa/gossip/host_parameters.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "dpwa/base/threads.h"
#include "dpwa/gossip/blend_regions.h"

namespace dpwa {
namespace {

unsigned usable_threads(std::size_t bytes, unsigned max_threads) {
  if (bytes < HostParameters::threads_from_bytes) return 1;
  return std::min(max_threads, static_cast<unsigned>(usable_processors().size()));
}

}  // namespace

HostParameters::HostParameters(Manifest manifest, std::span<std::byte> memory, unsigned max_threads)
    : manifest_(std::move(manifest)),
      memory_(memory),
      stores_(memory.size() < stream_from_bytes ? kernels::Stores::cached
                                                : kernels::Stores::streaming),
      passes_(usable_threads(memory.size(), max_threads)) {
  assert(memory_.size() == manifest_.total_bytes());
}

template <class Pass>
void HostParameters::run(SharingChoice& choice, ByteRange bytes, const Pass& pass) {
  if (passes_.threads() == 1 || bytes.length < threads_from_bytes) return pass(bytes);
  const bool share = choice.share();
  const auto from = std::chrono::steady_clock::now();
  if (share) {
    passes_.run(bytes, pass);
  } else {
    pass(bytes);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - from;
  choice.took(taken.count() / static_cast<double>(bytes.length));
}

void HostParameters::copy_out(std::span<std::byte> snapshot) {
  run(copies_, {0, memory_.size()}, [&](ByteRange piece) {
    kernels::copy(snapshot.subspan(piece.offset, piece.length),
                  memory_.subspan(piece.offset, piece.length), stores_);
  });
}

void HostParameters::blend(const Landing& landing, double factor) {
  run(blends_, landing.range(), [&](ByteRange piece) {
    blend_regions(manifest_, piece, memory_, landing.bytes(), landing.mode(), factor);
  });
}

void HostParameters::blend_and_copy_out(const Landing& landing, double factor,
                                        std::span<std::byte> snapshot) {
  run(blends_with_copy_, {0, memory_.size()}, [&](ByteRange piece) {
    blend_and_copy_regions(manifest_, piece, memory_, landing.bytes(), landing.range(),
                           landing.mode(), factor, snapshot, stores_);
  });
}

void HostParameters::assign(std::span<const std::byte> snapshot) {
  std::ranges::copy(snapshot.first(memory_.size()), memory_.begin());
}

}  // namespace dpwa
