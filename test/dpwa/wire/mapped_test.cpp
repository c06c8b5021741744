#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "test/dpwa/wire/alterations.h"
#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("a MAPPED survives the round trip") {
  Mapped sent = sample_mapped();
  sent.offset = max_snapshot_bytes - 64;
  sent.length = 64;
  sent.generation = ~std::uint64_t{0} - 1;
  sent.buffer = max_shared_buffers - 1;
  sent.progress.final = true;
  const auto frame = encode(sent, 3);
  CHECK(body_of(frame).size() == max_body_bytes(MessageType::mapped));
  const auto mapped = decode_mapped(body_of(frame));
  REQUIRE(mapped.has_value());
  CHECK(mapped->progress.version == sent.progress.version);
  CHECK(mapped->progress.lineage == sent.progress.lineage);
  CHECK(mapped->progress.clock == sent.progress.clock);
  CHECK(mapped->progress.loss == sent.progress.loss);
  CHECK(mapped->progress.weight == sent.progress.weight);
  CHECK(mapped->progress.time_us == sent.progress.time_us);
  CHECK(mapped->progress.final);
  CHECK(mapped->state == sent.state);
  CHECK(mapped->offset == sent.offset);
  CHECK(mapped->length == sent.length);
  CHECK(mapped->generation == sent.generation);
  CHECK(mapped->buffer == sent.buffer);
  CHECK(mapped->with_descriptor);
}

TEST_CASE("a MAPPED that no reader could use is neither sent nor accepted") {
  const auto refused = [](auto change) {
    Mapped message = sample_mapped();
    change(message);
    CHECK_THROWS_AS(encode(message, 1), std::invalid_argument);
  };
  refused([](Mapped& m) { m.generation = 0; });
  refused([](Mapped& m) { m.generation = 83; });  // being written
  refused([](Mapped& m) { m.buffer = max_shared_buffers; });
  refused([](Mapped& m) { m.offset = max_snapshot_bytes; });
  refused([](Mapped& m) { m.progress.clock = -1; });
  refused([](Mapped& m) { m.progress.weight = 0; });

  const auto frame = encode(sample_mapped(), 1);
  CHECK(fault_of(decode_mapped(altered(frame, 64, 83))) == Fault::bad_value);
  CHECK(fault_of(decode_mapped(altered(frame, 72, 64))) == Fault::bad_value);
  for (const int state : {0, 4, 255}) {
    CHECK(fault_of(decode_mapped(altered(frame, 76, std::uint8_t(state)))) == Fault::bad_value);
  }
  CHECK(fault_of(decode_mapped(altered(frame, 77, 4))) == Fault::bad_value);
  for (std::size_t at = 78; at < 88; ++at) {
    CHECK(fault_of(decode_mapped(altered(frame, at, 1))) == Fault::bad_value);
  }
}

TEST_CASE("a RELEASE says that the snapshot landed, or that it did not, and nothing else") {
  for (const bool landed : {false, true}) {
    const auto release = decode_release(body_of(encode(Release{landed}, 1)));
    REQUIRE(release.has_value());
    CHECK(release->landed == landed);
  }
  const auto frame = encode(Release{true}, 1);
  CHECK(fault_of(decode_release(altered(frame, 0, 2))) == Fault::bad_value);
  CHECK(fault_of(decode_release(altered(frame, 1, 1))) == Fault::bad_value);
}

}  // namespace
}  // namespace dpwa::wire
