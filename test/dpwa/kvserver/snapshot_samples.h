#pragma once

#include <memory>
#include <vector>

#include "dpwa/kvserver/snapshot_file.h"
#include "dpwa/kvstore/slices.h"

namespace dpwa::test {

inline kvserver::SnapshotHead sample_head() {
  kvserver::SnapshotHead head;
  head.id = {0x0102030405060708, 12};
  head.servers = 2;
  head.place = 1;
  head.cluster = "test";
  head.server = "s2";
  head.clock = 42;
  head.written_us = 123456789;
  head.slices = 3;
  return head;
}

// Three keys of the second of two servers: a number without an optimizer, and two with.
inline kvserver::Part sample_part() {
  kvserver::Part part;
  for (int number = 0; part.size() < 3; ++number) {
    const kvstore::Key key(number);
    if (kvstore::cut_into_slices(key, 2, 2).front().server != 1) continue;
    kvstore::ShardEngine::Captured slice{12, {key, 0}, {DType::float32, {2}}, {}};
    slice.state.values = std::make_shared<kvstore::Bytes>(8, std::byte{0x3f});
    if (!part.empty()) {
      kvstore::Forward change;
      change.version = 43;
      change.round = 42;
      change.advances = {{{"w1", 7}, 42}, {{"w2", 8}, 42}};
      const auto options = kvstore::encode(kvstore::default_options(
          part.size() == 1 ? kvstore::OptimizerKind::momentum : kvstore::OptimizerKind::adam));
      change.optimizer.assign(options.begin(), options.end());
      change.gradient.assign(8, std::byte{0x3e});
      slice.state.apply(slice.spec.dtype, change);
    }
    part.push_back(std::move(slice));
  }
  return part;
}

inline std::vector<std::byte> sample_bytes(const kvserver::SnapshotHead& head,
                                           const kvserver::Part& part) {
  std::vector<std::byte> bytes = encode_head(head);
  for (std::uint32_t place = 0; place < part.size(); ++place) {
    kvserver::write_slice(part[place], place, [&](const auto& piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
  }
  return bytes;
}

}  // namespace dpwa::test
