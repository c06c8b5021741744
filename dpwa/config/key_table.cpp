#include <cstdint>
#include <string>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "interpolation/registry.h"

namespace dpwa::config {
namespace {

KeySection top_level() {
  const In in;
  return {
      .path = "",
      .keys = {
          in.key("cluster", &Config::cluster, cluster_name(),
                 "nodes of another cluster are refused",
                 {.comment = "nodes of another cluster are refused"}),
          in.key("nodes", &Config::nodes, node_list(),
                 "the nodes, [below](#nodes); the only required key, left out where a "
                 "[launcher](LAUNCHERS.md) provides the nodes"),
          in.key("seeds", &Config::seeds, seed_list(),
                 "where nodes that no list names find one another "
                 "([LAUNCHERS.md](LAUNCHERS.md#without-a-meeting)); a host without a port means "
                 "24000"),
          in.key("backend", &Config::backend, backend(),
                 "what `make_adapter` makes: [gossip averaging](ALGORITHMS.md), [synchronous data "
                 "parallel](COLLECTIVE.md), a worker of the [parameter server](KVSTORE.md), or one "
                 "node without a network",
                 {.comment = "gossip | collective (synchronous all-reduce) | kvstore (servers) | "
                             "null (one node)",
                  .accepted = "`gossip`, `collective`, `kvstore`, `null`; `dpwa config check`, "
                              "`dpwa node` and trainers refuse back ends that the build leaves "
                              "out"}),
          in.key("preempted_exit_code", &Config::preempted_exit_code,
                 optional_whole<int>(0, 255, "an exit code"),
                 "exit code after the notice of a [preemption](OPERATIONS.md#signals). Unset: 0 "
                 "under torchrun, srun and mpirun, else 143"),
      }};
}

KeySection collective_keys() {
  const In in(&Config::collective);
  return {
      .path = "collective",
      .keys =
          {
              in.key("engine", &CollectiveConfig::engine, choice(engine_words),
                     "what transfers the gradients; `auto` is `dpwa`. "
                     "[`mpi`](LAUNCHERS.md#engine-mpi) is for processes started by mpirun with "
                     "`on_lost_rank: stop`; `nccl` was never run"),
              in.key("bucket_bytes", &CollectiveConfig::bucket_bytes,
                     size(0, std::int64_t{1} << 30, "a size of at most 1GiB"),
                     "size of a bucket of gradients; the one that fills first has at most 1 MiB. 0 "
                     "= one bucket per parameter",
                     {.shared = true}),
              in.key("compression", &CollectiveConfig::compression, choice(compression_words),
                     "format on the wire; sums are taken in fp32",
                     {.comment = "none | fp16 | bf16: format on the wire; sums are fp32",
                      .shared = true}),
              in.key("average_buffers", &CollectiveConfig::average_buffers, boolean(),
                     "BatchNorm statistics: `true`: the mean over all nodes; `false`: those of the "
                     "first node at work",
                     {.comment = "BatchNorm statistics: true: the mean; false: those of the first "
                                 "node at work",
                      .shared = true}),
              in.key(
                  "plaintext", &CollectiveConfig::plaintext, boolean(),
                  "gradients of another engine than `dpwa` may travel unencrypted even with `psk` "
                  "or `mtls`",
                  {.comment = "true: gradients of other engines than dpwa may travel unencrypted"}),
              in.key("start_wait_ms", &CollectiveConfig::start_wait, duration_above_0(),
                     "longest wait at the start for all nodes",
                     {.comment = "longest wait at the start for all nodes"}),
              in.key("hung_after_ms", &CollectiveConfig::hung_after, duration_from_0(),
                     "a node that answers but is late for this long counts as lost; 0 = never",
                     {.comment = "a node that answers but is late for this long counts as lost; 0 "
                                 "= never"}),
              in.key("lost_after_ms", &CollectiveConfig::lost_after, duration_from_0(),
                     "a node whose network thread is silent for this long counts as lost; 0 = "
                     "learned from the run"),
              in.key("on_lost_rank", &CollectiveConfig::on_lost_rank, choice(on_lost_rank_words),
                     "what the other nodes do when one is lost "
                     "([COLLECTIVE.md](COLLECTIVE.md#when-a-node-is-lost))",
                     {.comment = "stop | shrink | gossip: what the other nodes do when one is "
                                 "lost",
                      .shared = true}),
              in.key("minority", &CollectiveConfig::minority, choice(minority_words),
                     "what nodes that lack the majority of the last group do",
                     {.comment = "stop | gossip: what nodes without the majority of the group "
                                 "do",
                      .shared = true}),
          },
      .check = [](const Section& section, const Config& config) {
        const CollectiveEngine engine = config.collective.engine;
        const bool needs_all = engine == CollectiveEngine::mpi || engine == CollectiveEngine::nccl;
        if (needs_all && config.collective.on_lost_rank != OnLostRank::stop)
          section.need("on_lost_rank", "stop")
              .fail("engine " + std::string(name_of(engine)) +
                    " cannot continue without a rank; accepted: stop, or engine dpwa");
      }};
}

// "constant {value} | clock": the registered methods, each with its parameters.
std::string methods_with_parameters() {
  std::string line;
  for (const std::string& method : interpolation_registry().names()) {
    std::string parameters;
    for (const auto& parameter : interpolation_registry().find(method)->parameters)
      parameters += (parameters.empty() ? "" : ", ") + parameter.name;
    line += (line.empty() ? "" : " | ") + method;
    if (!parameters.empty()) line += " {" + parameters + "}";
  }
  return line;
}

KeySection interpolation_keys() {
  const In in(&Config::interpolation);
  return {.path = "interpolation",
          .accepted = "a method name or a map with 'method'",
          .keys = {
              in.key("method", &InterpolationConfig::method, interpolation_method(), "the policy",
                     {.comment = "How far a node moves towards its peer, 0 to 1: " +
                                 methods_with_parameters()}),
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
                 "`insecure`: plain TCP; anyone who reaches the port can read the model and send "
                 "parameters; not needed on loopback. `psk`: TLS 1.3 with one key for the cluster. "
                 "`mtls`: TLS 1.3 with a certificate for each node"),
          in.key("key_file", &SecurityConfig::key_file, secret_path(),
                 "required for `psk`: the file with the cluster's key", {.mode = "psk"}),
          in.key("ca", &SecurityConfig::ca, secret_path(),
                 "required for `mtls`: the authorities, in PEM, against which certificates are "
                 "checked",
                 {.mode = "mtls"}),
          in.key(
              "cert", &SecurityConfig::cert, secret_path(),
              "required for `mtls`: the certificate of this node in PEM, followed by intermediates",
              {.mode = "mtls"}),
          in.key("key", &SecurityConfig::key, secret_path(),
                 "required for `mtls`: the private key of this node in PEM, without a passphrase",
                 {.mode = "mtls"}),
      }};
}

KeySection transport_keys() {
  const In in(&Config::transport);
  const In limits(&Config::transport, &TransportConfig::connections);
  return {
      .path = "transport",
      .keys = {
          in.key("same_host", &TransportConfig::same_host, choice(same_host_words),
                 "`auto`: nodes of one user on one machine read each other's snapshots from memory "
                 "where they can; `off`: TCP always",
                 {.comment = "auto: nodes of one user and machine read each other's memory; off: "
                             "TCP always"}),
          in.key("encoding", &TransportConfig::encoding, choice(encoding_words),
                 "the [format](ENCODINGS.md) in which this node asks peers for their parameters: "
                 "less traffic for a bounded error. A node that reads a peer's memory rounds in "
                 "the same way",
                 {.comment = "fp32 | fp16 | bf16 | int8: format of parameters on the wire"}),
          in.key("checksum", &TransportConfig::checksum, choice(on_off_words),
                 "`off`: chunks travel without their CRC32C between nodes that both set it; for "
                 "links trusted to keep bytes intact, such as loopback"),
          limits.key("max_connections", &ConnectionLimits::in_all, whole(1, 65535, "a count"),
                     "inbound connections at once, half of them (at least 128) from one address "
                     "([what a further one does](SECURITY.md#limits)); raise it where more nodes "
                     "share a host"),
      }};
}

KeySection observe_keys() {
  const In in(&Config::observe);
  return {
      .path = "observe",
      .layout = Layout::flow,
      .keys =
          {
              in.key(
                  "port", &ObserveConfig::port, whole(0, 65535, "a port"),
                  "where each node and server tells its [metrics](OBSERVE.md#metrics) over HTTP, "
                  "at the address at which it listens; 0 = nowhere"),
              in.key("token_file", &ObserveConfig::token_file, secret_path(),
                     "the file with the token that readers of `/metrics` send"),
              in.key("open", &ObserveConfig::open, boolean(), "`true`: `/metrics` needs no token"),
          },
      .check = [](const Section& section, const Config& config) {
        const ObserveConfig& observe = config.observe;
        if (observe.port != 0 && !observe.open && observe.token_file.empty())
          section.fail("metrics need a token; accepted: token_file: FILE, or open: true");
        if (observe.open && !observe.token_file.empty())
          section.fail("'open: true' needs no token; accepted: open: true, or token_file: FILE");
      }};
}

KeySection log_keys() {
  const In in(&Config::log);
  return {
      .path = "log",
      .layout = Layout::flow,
      .keys = {
          in.key("level", &LogConfig::level,
                 one_of({"trace", "debug", "info", "warn", "error", "off"}),
                 "lines below this level are left out",
                 {.comment = "level: trace | debug | info | warn | error | off", .reloads = true}),
          in.key("file", &LogConfig::file, log_path(), "`\"\"` = standard error; not a folder",
                 {.comment = "file \"\": standard error", .reloads = true}),
      }};
}

}  // namespace

const std::vector<KeySection>& key_table() {
  static const auto& table = *new std::vector<KeySection>{top_level(),
                                                          gossip_keys(),
                                                          firewall_keys(),
                                                          membership_keys(),
                                                          collective_keys(),
                                                          kvstore_keys(),
                                                          kvstore_compression_keys(),
                                                          kvstore_snapshots_keys(),
                                                          interpolation_keys(),
                                                          security_keys(),
                                                          transport_keys(),
                                                          observe_keys(),
                                                          log_keys()};
  return table;
}

}  // namespace dpwa::config
