#include <doctest/doctest.h>

#include <stdexcept>

#include "interpolation/kernels/kernels.h"
#include "test/interpolation/kernels/reference.h"

using namespace dpwa;
using namespace dpwa::test;
using kernels::Stores;

namespace {

constexpr std::size_t kSizes[] = {0, 1, 3, 15, 17, 31, 32, 33, 63, 65, 128, 1000, 4099};

}  // namespace

TEST_CASE("a blend that copies gives the blend's bits twice at any size and address") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const DType dtype : kFloatingTypes) {
      const kernels::FloatingKernels& passes = passes_of(variant, dtype);
      for (const std::size_t count : kSizes) {
        const Bytes x = random_elements(dtype, count, 1 + count);
        const Bytes y = random_elements(dtype, count, 2 + count);
        Bytes delta = x, lerp = x;
        passes.delta(delta.data(), y.data(), count, 0.3);
        passes.lerp(lerp.data(), y.data(), count, 0.3);
        for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, size_of(dtype)}) {
          for (const bool streaming : {false, true}) {
            CAPTURE(variant.name);
            CAPTURE(name_of(dtype));
            CAPTURE(count);
            CAPTURE(offset);
            CAPTURE(streaming);
            const std::size_t copy_offset = streaming ? 0 : 3 * offset;
            {
              Placed own(x, offset), other(y, 2 * offset), copy(Bytes(x.size()), copy_offset);
              passes.delta_copy(own.data(), other.data(), copy.data(), count, 0.3, streaming);
              CHECK(own.bytes() == delta);
              CHECK(copy.bytes() == delta);
              CHECK(own.surroundings_untouched());
              CHECK(copy.surroundings_untouched());
            }
            Placed own(x, offset), other(y, 2 * offset), copy(Bytes(x.size()), copy_offset);
            passes.lerp_copy(own.data(), other.data(), copy.data(), count, 0.3, streaming);
            CHECK(own.bytes() == lerp);
            CHECK(copy.bytes() == lerp);
            CHECK(own.surroundings_untouched());
            CHECK(copy.surroundings_untouched());
          }
        }
      }
    }
  }
}

TEST_CASE("a copy gives the source's bytes at any size and address, and nothing else") {
  for (const std::size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 4099}) {
    const Bytes source = random_elements(DType::float16, (size + 1) / 2, 1 + size);
    for (const std::size_t offset : {0, 1, 16, 63}) {
      for (const Stores stores : {Stores::cached, Stores::streaming}) {
        CAPTURE(size);
        CAPTURE(offset);
        Placed from{std::span(source).first(size), offset / 2}, to(Bytes(size), offset);
        kernels::copy({to.data(), size}, {from.data(), size}, stores);
        CHECK(to.bytes() == from.bytes());
        CHECK(to.surroundings_untouched());
      }
    }
  }
}

TEST_CASE("each variant's streaming copy gives the source's bytes, and nothing else") {
  for (const kernels::Variant& variant : kernels::supported_variants()) {
    for (const std::size_t size : {1, 63, 64, 65, 200, 4099}) {
      CAPTURE(variant.name);
      CAPTURE(size);
      const Bytes source = random_elements(DType::float64, size / 8 + 1, size);
      Placed from{std::span(source).first(size), 5}, to(Bytes(size), 0);
      variant.kernels->streaming_copy(to.data(), from.data(), size);
      CHECK(to.bytes() == from.bytes());
      CHECK(to.surroundings_untouched());
    }
  }
}

TEST_CASE("a blend that copies does so with factors 0 and 1, and to an unaligned copy") {
  for (const DType dtype : kFloatingTypes) {
    for (const double factor : {0.0, 0.3, 1.0}) {
      for (const std::size_t offset : {0, 16, 8}) {
        CAPTURE(name_of(dtype));
        CAPTURE(factor);
        CAPTURE(offset);
        const Bytes x = random_elements(dtype, 333, 41), y = random_elements(dtype, 333, 42);
        Bytes delta = x, lerp = x;
        kernels::delta(dtype, delta, y, factor);
        kernels::lerp(dtype, lerp, y, factor);
        Bytes own = x;
        Placed copy(Bytes(x.size()), offset);
        const std::span target(copy.data(), x.size());
        kernels::delta_copy(dtype, own, y, target, factor, Stores::streaming);
        CHECK(own == delta);
        CHECK(copy.bytes() == delta);
        own = x;
        kernels::lerp_copy(dtype, own, y, target, factor, Stores::streaming);
        CHECK(own == lerp);
        CHECK(copy.bytes() == lerp);
      }
    }
  }
}

TEST_CASE("a copy whose length differs from its source's is refused") {
  Bytes x(64), y(64), copy(60);
  CHECK_THROWS_AS(kernels::delta_copy(DType::float32, x, y, copy, 0.5, Stores::cached),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::lerp_copy(DType::float32, x, y, copy, 0.5, Stores::cached),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::copy(copy, x, Stores::cached), std::invalid_argument);
}
