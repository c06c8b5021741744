#include "dpwa/kvserver/snapshot_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "test/dpwa/kvserver/snapshot_samples.h"

namespace dpwa::kvserver {
namespace {

using test::sample_bytes;
using test::sample_head;
using test::sample_part;

struct Read {
  SnapshotHead head;
  Part part;
  std::string problem;  // empty: the file is sound
};

Read read(std::span<const std::byte> bytes) {
  SnapshotSource source{bytes.size(), [&](std::span<std::byte> into) {
                          std::memcpy(into.data(), bytes.data(), into.size());
                          bytes = bytes.subspan(into.size());
                          return true;
                        }};
  const auto head = read_head(source);
  if (!head) return {{}, {}, head.error()};
  Read found{*head, {}, {}};
  const auto problem =
      read_slices(source, *head, [&](auto slice) { found.part.push_back(std::move(slice)); });
  found.problem = problem.value_or("");
  return found;
}

TEST_CASE("a part of a snapshot is read as it was written") {
  const Part part = sample_part();
  const Read found = read(sample_bytes(sample_head(), part));
  REQUIRE(found.problem == "");
  CHECK(found.head == sample_head());
  REQUIRE(found.part.size() == part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    const kvstore::SliceState& is = found.part[i].state;
    const kvstore::SliceState& was = part[i].state;
    CHECK(found.part[i].snapshot == sample_head().id.number);
    CHECK(found.part[i].slice == part[i].slice);
    CHECK(found.part[i].spec == part[i].spec);
    CHECK(*is.values == *was.values);
    CHECK(is.version == was.version);
    CHECK(is.round == was.round);
    CHECK(is.clocks == was.clocks);
    CHECK(is.optimizer_options == was.optimizer_options);
    CHECK(is.optimizer->steps() == was.optimizer->steps());
    CHECK(std::ranges::equal(is.optimizer->bytes(), was.optimizer->bytes()));
  }
}

TEST_CASE("the head of a snapshot has the bytes of its layout") {
  const std::vector<std::byte> bytes = encode_head(sample_head());
  const char expected[] =
      "dpwa-kvs"
      "\x01\0\0\0"
      "\x03\0\0\0"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x0c\0\0\0"
      "\x01\x01\x02\0\x01\0\x04\0\x02\0\0\0"
      "\x2a\0\0\0\0\0\0\0"
      "\x15\xcd\x5b\x07\0\0\0\0"
      "tests2";
  REQUIRE(bytes.size() == sizeof expected - 1 + 4);
  CHECK(std::memcmp(bytes.data(), expected, sizeof expected - 1) == 0);
}

TEST_CASE("every byte of a snapshot that is changed, and every cut, is noticed") {
  const std::vector<std::byte> sound = sample_bytes(sample_head(), sample_part());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    CAPTURE(i);
    auto bytes = sound;
    bytes[i] ^= std::byte{0x10};
    CHECK(read(bytes).problem != "");
    CHECK(read(std::span(sound).first(i)).problem == "is cut off");
  }
  auto longer = sound;
  longer.push_back({});
  CHECK(read(longer).problem == "has bytes after its end");
}

TEST_CASE("what is no snapshot, and one of another version, is named") {
  std::vector<std::byte> bytes(100);
  CHECK(read(bytes).problem == "is no snapshot");
  bytes = sample_bytes(sample_head(), sample_part());
  bytes[8] = std::byte{2};
  CHECK(read(bytes).problem == "has version 2; accepted: 1");
}

TEST_CASE("slices that are not this server's, or are doubled, are refused") {
  SnapshotHead head = sample_head();
  head.place = 0;
  CHECK(read(sample_bytes(head, sample_part())).problem ==
        "has a slice of another server, of key " + sample_part()[0].slice.key.text());
  Part part = sample_part();
  part[1] = part[0];
  CHECK(read(sample_bytes(sample_head(), part)).problem == "has its slices out of order");
  part = sample_part();
  part[0].spec.shape.push_back(2);
  CHECK(read(sample_bytes(sample_head(), part))
            .problem.starts_with("has values or an optimizer that do not fit key"));
  // A key whose list of slices alone would fill the memory.
  part[0].spec.shape = {std::uint64_t{1} << 44};
  const std::string problem = read(sample_bytes(sample_head(), part)).problem;
  CHECK(problem == "has a slice of another server, of key " + part[0].slice.key.text());
}

TEST_CASE("a snapshot of another cluster, server, type or number of servers is named as that") {
  const SnapshotHead own = sample_head();
  CHECK_FALSE(foreign(own, own));
  SnapshotHead other = own;
  other.cluster = "prod";
  CHECK(foreign(other, own) == "is of cluster 'prod', not 'test'");
  other = own;
  other.type = KvstoreType::dist_async;
  CHECK(foreign(other, own) == "is of type dist_async, not dist_sync");
  other = own;
  other.servers = 3;
  CHECK(foreign(other, own) == "is of 3 servers, not 2");
  other = own;
  other.server = "s1";
  CHECK(foreign(other, own) == "is of server 's1', not 's2'");
  other = own;
  other.place = 0;
  CHECK(foreign(other, own) ==
        "is of server number 1, not number 2 in the order of the cluster file");
}

}  // namespace
}  // namespace dpwa::kvserver
