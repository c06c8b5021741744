#include <cstdint>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "dpwa/config/nodes.h"

namespace dpwa::config {
namespace {

// A list of maps, read and printed by nodes.cpp: an exception.
Key nodes_key() {
  Key key;
  key.name = "nodes";
  key.accepted = "a list, at least one entry";
  key.reference =
      "the nodes, [below](#nodes); the only key that must be there, and left out where a "
      "[launcher](LAUNCHERS.md) gives the nodes";
  key.read = [](const Field& field, Config& config) { read_nodes(field, config.nodes); };
  key.print = [](const Config&) { return std::nullopt; };
  key.copy = [](const Config& from, Config& to) { to.nodes = from.nodes; };
  key.same = [](const Config& a, const Config& b) { return a.nodes == b.nodes; };
  return key;
}

KeySection top_level() {
  const In in;
  return {
      .path = "",
      .keys = {
          in.key("cluster", &Config::cluster, cluster_name(),
                 "nodes of another cluster are refused"),
          nodes_key(),
          in.key("backend", &Config::backend, backend(),
                 "gossip | collective (synchronous all-reduce) | null (one node); kvstore: a later "
                 "version",
                 {.reference = "what `make_adapter` makes: gossip averaging, [synchronous data "
                               "parallel](COLLECTIVE.md), or one node without a network. `dpwa "
                               "--version` names those of the build",
                  .accepted = "`gossip`, `collective`, `null`; `kvstore`, and what the build "
                              "leaves out, are refused by `dpwa config check`, `dpwa node` and "
                              "trainers",
                  .line = &line_at<&Config::backend_line>}),
      }};
}

KeySection collective_keys() {
  const In in(&Config::collective);
  const auto bytes = size(0, std::int64_t{1} << 30, "a size of at most 1GiB");
  return {
      .path = "collective",
      .above = {"Of backend collective alone. Gradients travel in buckets; sizes of 0: a bucket "
                "for each parameter."},
      .keys =
          {
              in.key("engine", &CollectiveConfig::engine, choice(engine_words),
                     "auto | gloo | nccl | mpi",
                     {.reference =
                          "what moves the gradients; `auto` is `gloo` for models in host memory. "
                          "[`mpi`](LAUNCHERS.md#engine-mpi) is for processes of mpirun and "
                          "`on_lost_rank: stop`, in builds that found MPI; `nccl` is only in "
                          "builds whose LibTorch has NCCL, and was never run"}),
              in.key("first_bucket_bytes", &CollectiveConfig::first_bucket_bytes, bytes,
                     "the bucket that is full first",
                     {.reference = "gradients travel in buckets, while the backward pass still "
                                   "runs: the size of the one that is full first; 0 = a bucket "
                                   "for each parameter"}),
              in.key("bucket_bytes", &CollectiveConfig::bucket_bytes, bytes, "the others",
                     {.reference = "of the others"}),
              in.key("compression", &CollectiveConfig::compression, choice(compression_words),
                     "none | fp16 | bf16: of what travels; sums are fp32",
                     {.reference = "of what travels; sums are taken in fp32"}),
              in.key("average_buffers", &CollectiveConfig::average_buffers, boolean(),
                     "BatchNorm statistics: false: those of the first node at work; true: the mean",
                     {.reference = "BatchNorm statistics: the mean over all nodes, or those of "
                                   "the first node that is at work"}),
              in.key("plaintext", &CollectiveConfig::plaintext, boolean(),
                     "true: gradients may travel unencrypted beside psk or mtls",
                     {.reference = "gradients may travel unencrypted where `security.mode` is "
                                   "`psk` or `mtls`"}),
              in.key("start_wait_ms", &CollectiveConfig::start_wait, duration_above_0(),
                     "longest wait at the start until all nodes are there",
                     {.reference = "the longest wait at the start until all nodes of the file "
                                   "are there"}),
              in.key("hung_after_ms", &CollectiveConfig::hung_after, duration_from_0(),
                     "a node that answers and is late for so long is lost; 0 = never",
                     {.reference = "a node whose network thread answers, but that is late for so "
                                   "long, is lost; 0 = never"}),
              in.key("stall_warn_ms", &CollectiveConfig::stall_warn, duration_from_0(),
                     "a node that is late for so long is named in the log; 0 = never"),
              in.key("lost_after_ms", &CollectiveConfig::lost_after, duration_from_0(),
                     "a node whose network thread is silent for so long is lost; 0 = learned from "
                     "the run",
                     {.reference = "a node whose network thread does not answer for so long is "
                                   "lost; 0: learned from the arrivals of this run"}),
              in.key("on_lost_rank", &CollectiveConfig::on_lost_rank, choice(on_lost_rank_words),
                     "stop | shrink | gossip: what the others do without it",
                     {.reference = "what the others do when a node is lost "
                                   "([COLLECTIVE.md](COLLECTIVE.md#when-a-node-is-lost))"}),
              in.key("minority", &CollectiveConfig::minority, choice(minority_words),
                     "stop | gossip: what a part without the majority of the group does",
                     {.reference = "what a part does that has not the majority of the last "
                                   "group"}),
          },
      .check = [](const Section& section, const Config& config) {
        if (config.collective.engine == CollectiveEngine::mpi &&
            config.collective.on_lost_rank != OnLostRank::stop)
          section.need("on_lost_rank", "stop")
              .fail("engine mpi cannot go on without a rank; accepted: stop, or engine gloo");
      }};
}

KeySection interpolation_keys() {
  const In in(&Config::interpolation);
  return {.path = "interpolation",
          .above = {"How far a node moves towards its peer, 0 to 1. Methods and their parameters:",
                    "  constant {value} | clock | loss | linear {start, end, target} | "
                    "loss_divergence {target}",
                    "divergence_threshold T > 0 damps each of them by loss/T while the loss is "
                    "below T; 0 = off."},
          .accepted = "a method name or a map with 'method'",
          .keys = {
              in.key("method", &InterpolationConfig::method, interpolation_method(), "the policy"),
              in.key("divergence_threshold", &InterpolationConfig::divergence_threshold,
                     number(0, unbounded),
                     "T > 0 damps the factor by loss/T while the loss is below T; 0 = off"),
          }};
}

KeySection security_keys() {
  const In in(&Config::security);
  return {
      .path = "security",
      .layout = Layout::flow,
      .accepted = "{mode: insecure | psk | mtls}",
      .keys = {
          in.key("mode", &SecurityConfig::mode, none_or(one_of({"insecure", "psk", "mtls"})),
                 "`insecure`: plain TCP, on purpose; whoever reaches the port can read the model "
                 "and send parameters; not needed on loopback. `psk`: TLS 1.3 with one key for the "
                 "cluster. `mtls`: TLS 1.3 with a certificate for each node"),
          in.key("key_file", &SecurityConfig::key_file, secret_path(),
                 "of `psk`, required: the file with the cluster's key", {.mode = "psk"}),
          in.key("ca", &SecurityConfig::ca, secret_path(),
                 "of `mtls`, required: the authorities in PEM by which certificates are checked",
                 {.mode = "mtls"}),
          in.key("cert", &SecurityConfig::cert, secret_path(),
                 "of `mtls`, required: the certificate of this node in PEM, intermediates after it",
                 {.mode = "mtls"}),
          in.key("key", &SecurityConfig::key, secret_path(),
                 "of `mtls`, required: its private key in PEM, without a passphrase",
                 {.mode = "mtls"}),
      }};
}

KeySection transport_keys() {
  const In in(&Config::transport);
  const In limits(&Config::transport, &TransportConfig::connections);
  const auto count = whole(1, 65535, "a count");
  return {
      .path = "transport",
      .keys = {
          in.key("same_host", &TransportConfig::same_host, choice(same_host_words),
                 "auto: nodes of one user and machine read each other's memory; off: TCP always",
                 {.reference = "`auto`: nodes of one user on one machine read each other's "
                               "snapshots from memory, and talk TCP where they cannot; `off`: TCP "
                               "always, and plain memory"}),
          in.key("encoding", &TransportConfig::encoding, choice(encoding_words),
                 "fp32 | fp16 | bf16 | int8: of parameters on the wire",
                 {.reference = "in what form peers are asked for their parameters; `fp32`: as "
                               "they are in memory; the others: less traffic for a [bounded "
                               "error](ENCODINGS.md). Between nodes that read each other's memory "
                               "(`same_host`) the reader rounds alike, so one host shows what a "
                               "network would"}),
          in.key("congestion_control", &TransportConfig::congestion_control, congestion_control(),
                 "auto: reno on loopback, else the system's own; or a name such as cubic, bbr",
                 {.reference = "`auto`: reno on loopback, else the system's own. A node whose "
                               "host has no such name does not start; `dpwa config check`, which "
                               "may run on another host, warns",
                  .line = &line_at<&Config::transport, &TransportConfig::congestion_control_line>}),
          in.key("chunk_bytes", &TransportConfig::chunk_bytes,
                 size(4 * 1024, 16 * 1024 * 1024, "a multiple of 64 from 4KiB to 16MiB", 64),
                 "checksummed unit of a reply; a multiple of 64 from 4KiB to 16MiB",
                 {.reference = "the unit of a reply that has a checksum of its own"}),
          in.key("checksum", &TransportConfig::checksum, choice(on_off_words),
                 "of chunks of parameters; off: none, for links that keep bytes whole",
                 {.reference = "`off`: chunks of parameters travel without their CRC32C between "
                               "nodes that both say so; for links that are trusted to keep bytes "
                               "whole, such as loopback. Heads and all other messages keep "
                               "theirs"}),
          limits.key("max_connections", &ConnectionLimits::in_all, count, "inbound, at once",
                     {.reference = "inbound, at once; one more closes the oldest that has not "
                                   "introduced itself, or is closed"}),
          limits.key("max_connections_per_address", &ConnectionLimits::per_address, count, "",
                     {.reference = "the same for one address; raise it where more nodes share a "
                                   "host"}),
          limits.key("max_connections_per_peer", &ConnectionLimits::per_peer, count,
                     "one more closes the one that has been idle longest",
                     {.reference = "of one name and address (`mtls`: of one name); one more closes "
                                   "the one that has been idle longest. The observers (`dpwa "
                                   "status`) of an address count as one peer, with four times as "
                                   "many"}),
          in.key("max_replies", &TransportConfig::max_replies, count,
                 "snapshots being sent at once; the next one is told to come back",
                 {.reference = "snapshots being sent at once, three quarters of them to one "
                               "address and two to one peer; one more caller is told to ask "
                               "somebody else"}),
          in.key("max_requests_per_second", &TransportConfig::max_requests_per_second,
                 whole(0, 1'000'000, "a rate"),
                 "on one connection; what is beyond waits; 0: no bound",
                 {.reference = "on one connection; a request beyond waits. 0 = no bound"}),
      }};
}

KeySection log_keys() {
  const In in(&Config::log);
  return {.path = "log",
          .layout = Layout::flow,
          .beside = "trace | debug | info | warn | error | off; no file = stderr",
          .keys = {
              in.key("level", &LogConfig::level,
                     one_of({"trace", "debug", "info", "warn", "error", "off"}),
                     "lines below this level are left out", {.reloads = true}),
              in.key("file", &LogConfig::file, log_path(), "`\"\"` = standard error; not a folder",
                     {.reloads = true, .line = &line_at<&Config::log, &LogConfig::file_line>}),
          }};
}

}  // namespace

const std::vector<KeySection>& key_table() {
  static const std::vector<KeySection> table = {
      top_level(),       gossip_keys(),     flow_control_keys(),  firewall_keys(),
      membership_keys(), collective_keys(), interpolation_keys(), security_keys(),
      transport_keys(),  log_keys()};
  return table;
}

}  // namespace dpwa::config
