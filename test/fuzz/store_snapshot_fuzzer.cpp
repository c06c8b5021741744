// The snapshot file of a server of the store: any bytes, and the same with right checksums.
// The first byte says which: 0, the bytes as they are; otherwise a head with its checksum and one
// COPY whose fields are the rest.

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "dpwa/base/checksum.h"
#include "dpwa/kvserver/snapshot_file.h"
#include "dpwa/wire/frame.h"
#include "test/fuzz/kv_body.h"
#include "test/fuzz/require.h"

using namespace dpwa;
using namespace dpwa::kvserver;

namespace {

using Bytes = std::vector<std::byte>;

// The file whose head says one slice, with that slice.
Bytes with_checksums(std::span<const std::byte> content) {
  SnapshotHead head;
  head.id = {1, 1};
  head.slices = 1;
  head.cluster = "c";
  head.server = "s";
  Bytes bytes = encode_head(head);
  const Bytes body = test::kv_body(content);
  const auto header = wire::encode_header({wire::MessageType::kv_copy, 0, body.size()});
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto content = std::as_bytes(std::span(data + 1, size - 1));
  const Bytes file = data[0] == 0 ? Bytes(content.begin(), content.end()) : with_checksums(content);
  std::span<const std::byte> rest = file;
  SnapshotSource source{rest.size(), [&](std::span<std::byte> into) {
                          DPWA_FUZZ_REQUIRE(into.size() <= rest.size());
                          std::memcpy(into.data(), rest.data(), into.size());
                          rest = rest.subspan(into.size());
                          return true;
                        }};
  const auto head = read_head(source);
  if (!head) return 0;
  Part part;
  const auto problem =
      read_slices(source, *head, [&](auto slice) { part.push_back(std::move(slice)); });
  if (problem) return 0;
  // What is accepted is written again as it was, but for the epoch, which no file needs.
  DPWA_FUZZ_REQUIRE(part.size() == head->slices);
  for (std::uint32_t place = 0; place < part.size(); ++place) {
    std::size_t bytes = 0;
    write_slice(part[place], place, [&](const auto& piece) { bytes += piece.size(); });
    DPWA_FUZZ_REQUIRE(bytes > 0);
  }
  return 0;
}
