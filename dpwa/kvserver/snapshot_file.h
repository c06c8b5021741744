#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpwa/kvstore/shard_engine.h"

namespace dpwa::kvserver {

// The part that one server has of a snapshot, as a file; little-endian:
//
//   offset size
//        0    8  "dpwa-kvs"
//        8    4  version of the format, 1
//       12    4  number of slices
//       16    8  run that wrote it (kvstore::SnapshotId)
//       24    4  number of the snapshot, from 1
//       28    1  type of the store: 1 dist_sync, 2 dist_async, 3 dist_ssp
//       29    1  1: the pushes of a step are one update
//       30    2  number of servers of the store
//       32    2  place of this server among them, from 0
//       34    2  bytes of the name of the cluster, at most 255
//       36    2  bytes of the name of the server, at most 255
//       38    2  zero
//       40    8  clock: the highest step that a worker pushes next
//       48    8  time of writing, in µs since 1970
//       56    .  the two names
//        .    4  CRC32C of everything before
//        .    .  for each slice a frame COPY of protocol version 1 (docs/PROTOCOL.md), whose
//        request
//                id is its place here, from 0. COPY has checksums of its own.
//
// Nothing follows. Another layout of COPY is another version of this format.
struct SnapshotHead {
  kvstore::SnapshotId id;
  KvstoreType type = KvstoreType::dist_sync;
  bool merged = true;
  std::uint16_t servers = 1;
  std::uint16_t place = 0;
  std::string cluster;
  std::string server;
  std::uint64_t clock = 0;
  std::uint64_t written_us = 0;
  std::uint32_t slices = 0;
  bool operator==(const SnapshotHead&) const = default;
};

using Part = std::vector<kvstore::ShardEngine::Captured>;

// The error is the end of a line that begins with the name of the file: "is cut off".
template <typename T>
using SnapshotResult = boost::system::result<T, std::string>;

// Throws std::invalid_argument for names that are too long.
std::vector<std::byte> encode_head(const SnapshotHead& head);
// Calls `write` with the bytes of a slice, part after part, and passes on what it throws.
void write_slice(const kvstore::ShardEngine::Captured& slice, std::uint32_t place,
                 const std::function<void(std::span<const std::byte>)>& write);

// The bytes of a file, which may be anything.
struct SnapshotSource {
  std::uint64_t left = 0;                          // bytes that have not been read yet
  std::function<bool(std::span<std::byte>)> fill;  // false: the file cannot be read
};
SnapshotResult<SnapshotHead> read_head(SnapshotSource& source);
// Called after read_head(): reads each slice once, in order. Returns the error of the first invalid
// slice.
std::optional<std::string> read_slices(
    SnapshotSource& source, const SnapshotHead& head,
    const std::function<void(kvstore::ShardEngine::Captured)>& take);

// Why a valid file does not belong to the server that `own` describes; none when it does.
std::optional<std::string> foreign(const SnapshotHead& found, const SnapshotHead& own);

}  // namespace dpwa::kvserver
