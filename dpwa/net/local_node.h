#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dpwa/net/members.h"
#include "dpwa/net/status_notes.h"
#include "dpwa/net/traffic.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/snapshot_store.h"
#include "dpwa/wire/messages.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

class Security;

// What both network threads need to know of the node they serve. Constant but for the atomics and
// the store, which synchronise themselves.
struct LocalNode {
  LocalNode(std::string cluster_name, std::string node_name, std::uint64_t node_incarnation,
            std::vector<std::string> node_peers, Manifest node_manifest, std::size_t chunk_bytes,
            const BufferAllocator& allocate, bool with_chunk_checksums = true,
            std::unique_ptr<Members> node_members = nullptr)
      : cluster(std::move(cluster_name)),
        name(std::move(node_name)),
        incarnation(node_incarnation),
        peers(std::move(node_peers)),
        manifest(std::move(node_manifest)),
        chunk_checksums(with_chunk_checksums),
        store(manifest.total_bytes(), chunk_bytes, allocate),
        members(node_members ? std::move(node_members)
                             : std::make_unique<Members>(name, incarnation, peers)) {}

  const std::string cluster;
  const std::string name;
  const std::uint64_t incarnation;       // grows with every start of the node
  const std::vector<std::string> peers;  // names at the start, by PeerId
  const Manifest manifest;
  Codec codec = Codec::raw;  // asked of peers; set before the threads begin
  // How connections are secured; null: not at all. Set before the threads begin.
  std::shared_ptr<Security> security;
  bool of_file = true;         // the others' cluster file names it; set before the threads begin
  const bool chunk_checksums;  // false: none towards peers that want none either
  SnapshotStore store;
  const std::unique_ptr<Members> members;  // who is in the cluster; never null
  // What HELLO and WELCOME say that this node understands.
  std::uint32_t capabilities() const {
    return wire::all_codecs | (chunk_checksums ? 0 : wire::unchecked_chunks_capability) |
           (members->exchanges() ? wire::members_capability : 0);
  }
  std::atomic<wire::NodeState> state{wire::NodeState::joining};
  std::atomic<bool> stale{false};  // its trainer is gone: the last snapshot is all there will be
  // Another back end trains: the last snapshot is not of now, and is not given to be blended.
  std::atomic<bool> dormant{false};
  Traffic traffic;
  StatusNotes notes;
};

}  // namespace dpwa
