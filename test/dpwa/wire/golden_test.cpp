#include "test/dpwa/wire/golden_file.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

TEST_CASE("every message is encoded to the bytes of its golden file, and decoded from them") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.name);
    if (update_golden()) write_golden(sample.name, sample.frame);
    const std::vector<std::byte> golden = read_golden(sample.name);
    CHECK(sample.frame == golden);
    const auto again = transcode(golden);
    REQUIRE(again.has_value());
    CHECK(*again == golden);
  }
}

TEST_CASE("the golden files cover every message type") {
  for (unsigned type = 0; type < 256; ++type) {
    if (!is_message_type(type)) continue;
    CAPTURE(type);
    const auto all = samples();
    CHECK(std::any_of(all.begin(), all.end(), [&](const Sample& sample) {
      return header_of(sample.frame).type == static_cast<MessageType>(type);
    }));
  }
}

}  // namespace
}  // namespace dpwa::wire
