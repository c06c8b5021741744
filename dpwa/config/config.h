#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/beat_interval.h"
#include "dpwa/kvstore/compression.h"
#include "dpwa/kvstore/store_type.h"
#include "dpwa/rules/options.h"
#include "interpolation/interpolation.h"
#include "interpolation/kernels/codec.h"

namespace dpwa {

class GuardedInterpolation;
namespace kvstore {
struct ShardRules;
}

// The cluster file as plain values. Every field has its default here, with the meaning of zero
// beside it. A Config is written by hand, or loaded and validated by load_config and load_cluster.

struct NodeEntry {
  std::string name;
  std::string host = "127.0.0.1";  // what peers dial
  std::string bind;                // where this node listens; empty = host
  std::uint16_t port = 0;
  std::vector<int> cores;              // processors to pin to; empty = not pinned
  std::vector<std::string> addresses;  // `host` resolved, numeric, in the order to try; set on load
  std::string bind_address;            // bind_host() resolved, numeric; set on load

  const std::string& bind_host() const { return bind.empty() ? host : bind; }
  bool operator==(const NodeEntry&) const = default;
};

enum class Backend { gossip, collective, kvstore, null };
enum class BlendMode { delta, lerp };

struct GossipConfig : PullOptions, StalenessOptions, StartOptions {
  Duration step_budget{};  // longest wait of step() for the network; 0 = never wait
  BlendMode blend = BlendMode::delta;
  bool ledger = true;        // keeps the accounts of pairs of nodes even, where they can be
  std::uint32_t blocks = 1;  // parts of the model; a pull brings one of them. 1 to 64
  bool final_average = true;
  bool daemon = false;  // the network side is a process of its own: `dpwa node`
  // Seed of the choice of peers and blocks and of the moments of pulls; none: taken from the clock.
  std::optional<std::uint64_t> seed;
  Duration finish_wait =
      std::chrono::milliseconds(10000);  // longest wait at the end for the others
  FirewallOptions firewall;
  MembershipOptions membership;
};

enum class CollectiveEngine { automatic, dpwa, gloo, nccl, mpi };
enum class OnLostRank { stop, shrink, gossip };
enum class Minority { stop, gossip };

struct CollectiveConfig : GradientOptions {
  CollectiveEngine engine = CollectiveEngine::automatic;
  bool plaintext = false;  // gradients may travel unencrypted beside psk or mtls
  Duration start_wait = std::chrono::seconds(60);  // longest wait at the start for all nodes
  // A rank that is late for this long is lost, although its network thread answers; 0 = never.
  Duration hung_after = std::chrono::minutes(10);
  // A rank whose network thread does not answer for this long is lost; 0 = learned from the run.
  Duration lost_after{};
  OnLostRank on_lost_rank = OnLostRank::stop;
  Minority minority = Minority::stop;  // of a part without the majority of the last group
};

// automatic: server, or worker for a merged type and a model of very many parameters.
enum class KvstoreUpdate { automatic, server, worker };

// The snapshots of the servers, on their disks.
struct KvstoreSnapshots {
  std::string folder;  // absolute; "{name}" stands for the name of the server. Empty = none
  Duration every = std::chrono::minutes(5);
  std::uint32_t keep = 2;  // complete ones
};

struct KvstoreConfig {
  KvstoreType type = KvstoreType::dist_sync;
  std::uint64_t staleness = 0;  // of dist_ssp, in steps
  KvstoreUpdate update = KvstoreUpdate::automatic;
  std::uint32_t replicas = 0;  // of each slice, on another server: 0 or 1
  kvstore::CompressionOptions compression;
  std::vector<NodeEntry> servers;
  std::uint64_t memory_bytes = 0;  // of one server; 0 = three quarters of the machine's
  std::uint32_t min_workers = 0;   // that the first step waits for; 0 = all nodes of the file
  Duration start_wait = std::chrono::seconds(60);  // longest wait at the start for all of them
  // A process that is silent for so long is lost.
  Duration lost_after = kvstore::default_lost_after;
  KvstoreSnapshots snapshots;
};

struct InterpolationConfig {
  std::string method = "constant";
  InterpolationParameters parameters;  // only those given; the registry knows the defaults
  double divergence_threshold = 0;     // 0 = no damping
};

// Paths are absolute; "{name}" in them stands for the name of the node.
struct SecurityConfig {
  std::string mode;      // insecure, psk, mtls; empty = not given, which allows loopback only
  std::string key_file;  // of psk: the cluster's key
  std::string ca;        // of mtls, in PEM: the authorities that nodes' certificates are checked by
  std::string cert;      // the certificate of this node, naming it
  std::string key;       // and its private key
};

struct TransportConfig : ServingOptions, ChunkOptions {
  Codec encoding = Codec::raw;  // in which peers are asked for their parameters
  bool checksum = true;         // of chunks; false: none between nodes that both say so
};

// What a process tells over HTTP, for probes and Prometheus.
struct ObserveConfig {
  std::uint16_t port = 0;  // 0 = nothing
  bool open = false;       // metrics need no token
  std::string token_file;  // absolute; empty = none
};

struct LogConfig {
  std::string level = "info";  // trace, debug, info, warn, error, off
  std::string file;            // empty = stderr
};

struct Config {
  std::string cluster = "dpwa";
  std::vector<NodeEntry> nodes;
  Backend backend = Backend::gossip;
  // Where processes that are in no list find the others: hosts and ports, resolved on load.
  std::vector<NodeEntry> seeds;
  std::optional<int> preempted_exit_code;  // after SIGUSR1 or SIGUSR2; none: the launcher decides
  GossipConfig gossip;
  CollectiveConfig collective;
  KvstoreConfig kvstore;
  InterpolationConfig interpolation;
  SecurityConfig security;
  TransportConfig transport;
  ObserveConfig observe;
  LogConfig log;

  std::filesystem::path file;    // where it came from; empty when built in code
  std::string original_form_by;  // why it has the original's defaults; empty: it has ours
  // The line on which the file gives a key or a section, by its path such as "gossip.daemon".
  std::map<std::string, int> lines;
  std::string self;  // name of this node; empty when loaded with load_cluster
  // Nodes to join by, as host:port and resolved; empty: a node of the file that starts with it.
  std::vector<NodeEntry> join;
  bool self_added = false;  // the own node is none of the file's
  bool by_seeds = false;    // the file lists no nodes, and seeds bring them together

  std::size_t self_index() const;  // throws std::logic_error when `self` is not set
  const NodeEntry& self_node() const { return nodes.at(self_index()); }
  // The own entry of kvstore.servers; null when this process is no server.
  const NodeEntry* self_server() const;
  // Whether this node comes to a cluster whose file does not name it.
  bool is_joiner() const { return !by_seeds && !join.empty() && (self_added || nodes.size() == 1); }
};

// Bad configuration, usage or data: one line "file:line: key: what is wrong; accepted: ..." to
// print. Programs print what() and exit with 2.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws ConfigError about a value that was read and cannot be used after all, with the line of the
// key or of the section around it. `problem` ends with what would be accepted.
[[noreturn]] void fail_at_key(const Config& config, const std::string& key,
                              const std::string& problem);

// A launcher can take the place of --name and of the nodes of the file. load_config() calls this
// when no name was given. It sets `self`, and `nodes` when the file lists none. It changes nothing
// when no launcher has started this process. load_config() passes on what it throws.
using Launcher = std::function<void(Config& config)>;

// Loads, validates and resolves the cluster file, applies the DPWA_* overrides to node `name`.
// `name` empty: taken from DPWA_NAME. Throws ConfigError. `join` lists running nodes as HOST:PORT.
// With it, the file need not have the name: DPWA_HOST (or 127.0.0.1), DPWA_PORT and DPWA_BIND then
// give the own entry.
Config load_config(const std::filesystem::path& file, const std::string& name = "",
                   const std::vector<std::string>& join = {}, const Launcher& launcher = {});

// The same between two steps of a run. A file that is a pipe gets 50 ms at most.
Config reload_config(const std::filesystem::path& file, const std::string& name = "",
                     const std::vector<std::string>& join = {}, const Launcher& launcher = {});

// The same for programs that are not a node of the file (status, run.sh): no own name, no
// overrides. `text`: takes the text in UTF-8, as a pipe can be read only once.
Config load_cluster(const std::filesystem::path& file, std::string* text = nullptr);

// load_cluster() for a file that may leave `nodes` to a launcher. The result then has no nodes.
Config load_launchable(const std::filesystem::path& file);

// load_cluster() for a server of backend kvstore: `self` is the name of one of kvstore.servers, or
// DPWA_NAME.
Config load_server_config(const std::filesystem::path& file, const std::string& name = "");

// load_server_config() where `name` is that of a server, else load_config(). An error line about a
// name that is neither lists the nodes and the servers.
Config load_process_config(const std::filesystem::path& file, const std::string& name);

// load_cluster() for a text, which messages call `file`. Hosts are not resolved.
Config parse_cluster(const std::string& text, const std::filesystem::path& file);

// Whether that many nodes can ever run: a closed cluster has only the nodes of its file.
bool may_run(const Config& config, std::uint64_t nodes);
// Why they cannot, as the beginning of a message: "5 nodes, where the file has 3 and ...".
std::string unreachable_count(const Config& config, std::uint64_t nodes);

// The effective configuration as a cluster file that loads to the same Config.
std::string to_yaml(const Config& config);

// The policy that the cluster file chooses, behind every guard.
GuardedInterpolation make_interpolation(const InterpolationConfig& config);

// The number of workers of backend kvstore that the first step waits for.
std::size_t first_workers(const Config& config);
// How its servers make updates of pushes. `kvstore.type` is one of the types dist_*.
kvstore::ShardRules store_rules(const Config& config);

}  // namespace dpwa
