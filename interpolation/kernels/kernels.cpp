#include "interpolation/kernels/kernels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "interpolation/kernels/checked_landing.h"
#include "interpolation/kernels/variants.h"

namespace dpwa::kernels {
namespace {

std::atomic<const Variant*> chosen = nullptr;

const FloatingKernels& passes_for(DType dtype) {
  const KernelTable& table = *selected_variant().kernels;
  switch (dtype) {
    case DType::float32:
      return table.float32;
    case DType::float64:
      return table.float64;
    case DType::float16:
      return table.float16;
    case DType::bfloat16:
      return table.bfloat16;
    default:
      break;
  }
  throw std::invalid_argument("a floating-point pass over " + std::string(name_of(dtype)));
}

// Number of elements; checked, because a wrong length would write past a buffer.
std::size_t elements(DType dtype, std::size_t bytes, std::size_t other_bytes) {
  if (bytes != other_bytes || bytes % size_of(dtype) != 0) {
    throw std::invalid_argument("a pass over " + std::string(name_of(dtype)) + " buffers of " +
                                std::to_string(bytes) + " and " + std::to_string(other_bytes) +
                                " bytes");
  }
  return bytes / size_of(dtype);
}

void check_factor(double factor) {
  if (!std::isfinite(factor))
    throw std::invalid_argument("a blend with a factor that is not finite");
}

// Counters are few, so this pass has no variants.
template <class Integer>
void maximum_of(std::span<std::byte> x, std::span<const std::byte> peer) {
  for (std::size_t at = 0; at < x.size(); at += sizeof(Integer)) {
    Integer own, other;
    std::memcpy(&own, x.data() + at, sizeof own);
    std::memcpy(&other, peer.data() + at, sizeof other);
    if (other > own) std::memcpy(x.data() + at, &other, sizeof other);
  }
}

}  // namespace

const Variant& selected_variant() {
  const Variant* variant = chosen.load(std::memory_order_relaxed);
  return variant != nullptr ? *variant : supported_variants().front();
}

void use_instruction_set(std::string_view name) {
  const auto variants = supported_variants();
  const auto found = std::ranges::find(variants, name, &Variant::name);
  if (found == variants.end()) {
    std::string all;
    for (const Variant& variant : variants) all.append(" ").append(variant.name);
    throw std::invalid_argument("this processor has no instruction set '" + std::string(name) +
                                "', only:" + all);
  }
  chosen.store(&*found, std::memory_order_relaxed);
}

PassStats land_difference(DType dtype, std::span<std::byte> landing,
                          std::span<const std::byte> peer, std::span<const std::byte> own,
                          Stores stores) {
  const FloatingKernels& passes = passes_for(dtype);
  elements(dtype, landing.size(), own.size());
  const std::size_t count = elements(dtype, landing.size(), peer.size());
  const auto pass =
      streams(stores, landing.data()) ? passes.land_difference_streaming : passes.land_difference;
  const RawStats stats = pass(landing.data(), peer.data(), own.data(), count);
  return {stats.squared_distance, stats.finite};
}

bool checks_while_landing(DType dtype) {
  return dtype == DType::float32 && selected_variant().land_checked != nullptr;
}

PassStats land_difference_checked(DType dtype, std::span<std::byte> landing,
                                  std::span<const std::byte> peer, std::span<const std::byte> own,
                                  Stores stores, std::uint32_t& state) {
  elements(dtype, landing.size(), own.size());
  const std::size_t count = elements(dtype, landing.size(), peer.size());
  if (!checks_while_landing(dtype)) throw std::invalid_argument("a pass that does not exist here");
  const RawStats stats = selected_variant().land_checked(
      landing.data(), peer.data(), own.data(), count, streams(stores, landing.data()), state);
  return {stats.squared_distance, stats.finite};
}

PassStats land_copy(DType dtype, std::span<std::byte> landing, std::span<const std::byte> peer,
                    std::span<const std::byte> own) {
  const FloatingKernels& passes = passes_for(dtype);
  elements(dtype, landing.size(), own.size());
  const std::size_t count = elements(dtype, landing.size(), peer.size());
  const RawStats stats = passes.land_copy(landing.data(), peer.data(), own.data(), count);
  return {stats.squared_distance, stats.finite};
}

void delta(DType dtype, std::span<std::byte> x, std::span<const std::byte> difference,
           double factor) {
  const FloatingKernels& passes = passes_for(dtype);
  const std::size_t count = elements(dtype, x.size(), difference.size());
  check_factor(factor);
  // x + 0 * d would turn -0 into 0, and anything into NaN where d is not finite.
  if (factor == 0) return;
  passes.delta(x.data(), difference.data(), count, factor);
}

void lerp(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer, double factor) {
  const FloatingKernels& passes = passes_for(dtype);
  const std::size_t count = elements(dtype, x.size(), peer.size());
  check_factor(factor);
  if (factor == 0 || count == 0) return;
  if (factor == 1) {
    std::memmove(x.data(), peer.data(), x.size());
    return;
  }
  passes.lerp(x.data(), peer.data(), count, factor);
}

void delta_copy(DType dtype, std::span<std::byte> x, std::span<const std::byte> difference,
                std::span<std::byte> copy, double factor, Stores stores) {
  const FloatingKernels& passes = passes_for(dtype);
  elements(dtype, x.size(), copy.size());
  const std::size_t count = elements(dtype, x.size(), difference.size());
  check_factor(factor);
  if (factor == 0) return kernels::copy(copy, x, stores);
  passes.delta_copy(x.data(), difference.data(), copy.data(), count, factor,
                    streams(stores, copy.data()));
}

void lerp_copy(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer,
               std::span<std::byte> copy, double factor, Stores stores) {
  const FloatingKernels& passes = passes_for(dtype);
  elements(dtype, x.size(), copy.size());
  const std::size_t count = elements(dtype, x.size(), peer.size());
  check_factor(factor);
  if (factor == 0 || factor == 1) {
    lerp(dtype, x, peer, factor);
    return kernels::copy(copy, x, stores);
  }
  passes.lerp_copy(x.data(), peer.data(), copy.data(), count, factor, streams(stores, copy.data()));
}

void copy(std::span<std::byte> to, std::span<const std::byte> from, Stores stores) {
  if (to.size() != from.size()) {
    throw std::invalid_argument("a copy of " + std::to_string(from.size()) + " bytes to " +
                                std::to_string(to.size()));
  }
  if (stores == Stores::streaming) {  // up to the target's next line
    const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to.data()) % line_bytes;
    const std::size_t head = std::min(to.size(), (line_bytes - past_line) % line_bytes);
    if (head > 0) std::memcpy(to.data(), from.data(), head);
    to = to.subspan(head);
    from = from.subspan(head);
  }
  if (to.empty()) return;
  if (streams(stores, to.data()))
    return selected_variant().kernels->streaming_copy(to.data(), from.data(), to.size());
  std::memcpy(to.data(), from.data(), to.size());
}

std::string_view instruction_set() {
  return selected_variant().name;
}

void maximum(DType dtype, std::span<std::byte> x, std::span<const std::byte> peer) {
  const std::size_t size = size_of(dtype);
  if (size == 0 || x.size() != peer.size() || x.size() % size != 0) {
    throw std::invalid_argument("maximum over " + std::string(name_of(dtype)) + " buffers of " +
                                std::to_string(x.size()) + " and " + std::to_string(peer.size()) +
                                " bytes");
  }
  switch (dtype) {
    case DType::int64:
      return maximum_of<std::int64_t>(x, peer);
    case DType::int32:
      return maximum_of<std::int32_t>(x, peer);
    case DType::int16:
      return maximum_of<std::int16_t>(x, peer);
    case DType::int8:
      return maximum_of<std::int8_t>(x, peer);
    case DType::uint8:
    case DType::boolean:
      return maximum_of<std::uint8_t>(x, peer);
    default:
      break;
  }
  throw std::invalid_argument("an integer pass over " + std::string(name_of(dtype)));
}

}  // namespace dpwa::kernels
