#include "dpwa/collectives/plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "dpwa/collectives/parts.h"

namespace dpwa::collectives {
namespace {

using Way = AllreducePlan::Way;

TEST_CASE("an all-reduce of small data goes as a whole, of large data in parts") {
  for (int size = 1; size <= 64; ++size) {
    CAPTURE(size);
    CHECK(plan_allreduce(4, DType::float32, size).way == Way::whole);
    CHECK(plan_allreduce(100'000'000, DType::float32, size).way != Way::whole);
    CHECK(plan_allreduce(100'000'000, DType::float16, size).way == Way::parts);
  }
  CHECK(plan_allreduce(4096, DType::float32, 4).way == Way::whole);
  CHECK(plan_allreduce(400'000, DType::float32, 4).way == Way::parts);
  CHECK(plan_allreduce(100'000'000, DType::float32, 64).way == Way::ring);
}

TEST_CASE("larger data never goes back to a way of smaller data") {
  for (int size = 2; size <= 64; ++size) {
    for (const DType type : {DType::float32, DType::bfloat16}) {
      auto before = Way::whole;
      for (std::size_t bytes = 8; bytes < (std::size_t{1} << 32); bytes += bytes / 2) {
        const AllreducePlan plan = plan_allreduce(bytes, type, size);
        CAPTURE(size);
        CAPTURE(bytes);
        CHECK(plan.way >= before);
        before = plan.way;
        if (plan.way != Way::whole) CHECK(plan.chunk_bytes > 0);
        CHECK(plan.chunk_bytes % part_unit == 0);
      }
    }
  }
}

TEST_CASE("parts and their chunks cover the data once, in order") {
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 4096UL, 12'345UL}) {
    for (int parts = 1; parts <= 9; ++parts) {
      const std::size_t chunk_bytes = 128;
      const std::size_t chunks = chunks_of(bytes, parts, chunk_bytes);
      std::size_t at = 0;
      for (int index = 0; index < parts; ++index) {
        const Part part = byte_part_of(bytes, parts, index);
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
          const Part piece = chunk_of(part, chunk_bytes, chunk);
          if (piece.bytes > 0) CHECK(piece.begin == at);
          CHECK(piece.bytes <= chunk_bytes);
          at += piece.bytes;
        }
      }
      CHECK(at == bytes);
    }
  }
}

}  // namespace
}  // namespace dpwa::collectives
