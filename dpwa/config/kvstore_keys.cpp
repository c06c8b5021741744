#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "dpwa/config/field.h"
#include "dpwa/config/key_rows.h"
#include "dpwa/config/text.h"
#include "dpwa/kvstore/compression.h"

namespace dpwa::config {
namespace {

Format<KvstoreType> store_type() {
  Format<KvstoreType> format = choice(kvstore_type_words);
  format.read = [read = format.read](const Field& field) {
    for (const Word<KvstoreType>& alias : kvstore_type_aliases)
      if (field.is_scalar() && field.text() == alias.name) return alias.value;
    return read(field);
  };
  return format;
}

// The threshold of 2bit: 0 in CompressionOptions means automatic.
Format<double> threshold() {
  constexpr auto word = "auto";
  const Format<double> above_0 = number(0, unbounded);
  return {
      .read =
          [above_0](const Field& field) {
            if (field.is_scalar() && field.text() == word) return 0.0;
            const double value = above_0.read(field);
            if (kvstore::compression_problem({kvstore::Compression::two_bit, value}) || value == 0)
              field.fail(shown(field.text()) +
                         " is out of range; accepted: auto, or a number above 0 that fp32 holds");
            return value;
          },
      .print = [above_0](const double& value) { return value == 0 ? word : above_0.print(value); },
      .accepted = "`auto`, or a number above 0 that fp32 holds"};
}

// A process has to be heard of some times within it. Its clock ticks every 50 ms.
constexpr Duration least_silence = std::chrono::milliseconds(200);
Format<Duration> silence() {
  Format<Duration> format = duration_above_0();
  format.read = [read = format.read](const Field& field) {
    const Duration time = read(field);
    if (time < least_silence)
      field.fail(shown(field.text()) + " is out of range; accepted: a time of at least 200 ms");
    return time;
  };
  format.accepted = "a time of at least 200 ms";
  return format;
}

// The error says what the words mean, because some types take only one of them.
Format<KvstoreUpdate> place_of_updates() {
  Format<KvstoreUpdate> format = choice(kvstore_update_words);
  format.read = [read = format.read, words = names_in(kvstore_update_words)](const Field& field) {
    if (field.is_scalar() && std::ranges::find(words, field.text()) == words.end()) {
      field.fail(shown(field.text()) + " is unknown," + suggestion(field.text(), words) +
                 " accepted: auto (by the number of parameters), server (the optimizer runs on the "
                 "servers), worker (it runs on each worker, which needs the mean of all pushes: "
                 "type dist_sync, or dist_ssp with staleness: 0)");
    }
    return read(field);
  };
  return format;
}

void check_compression(const Section& section, const Config& config) {
  const kvstore::CompressionOptions& compression = config.kvstore.compression;
  if (compression.threshold != 0 && compression.type != kvstore::Compression::two_bit)
    section.need("threshold", "auto").fail("is only for type 2bit; accepted: auto, or that type");
}

void check_kvstore(const Section& section, const Config& config) {
  const KvstoreConfig& store = config.kvstore;
  if (!is_local(store.type) && !merges(store.type, store.staleness) &&
      store.update == KvstoreUpdate::worker) {
    section.need("update", "auto")
        .fail(std::string("type ") + name_in(kvstore_type_words, store.type) +
              " makes an update at each push, which only servers can do; accepted: auto, server, "
              "or type "
              "dist_sync, or dist_ssp with staleness: 0");
  }
  if (store.update == KvstoreUpdate::worker && !store.snapshots.folder.empty()) {
    section.need("update", "auto")
        .fail(
            "the servers then have no weights, and a run cannot continue from their snapshots "
            "(kvstore.snapshots); accepted: auto, server, or no snapshots, and checkpoints of the "
            "workers");
  }
  if (store.staleness != 0 && store.type != KvstoreType::dist_ssp) {
    section.need("staleness", "0").fail("is only for type dist_ssp; accepted: 0, or that type");
  }
  if (store.replicas > 0 && store.servers.size() == 1) {
    section.need("replicas", "0")
        .fail(
            "a replica lies on another server, and kvstore.servers has one; accepted: 0, or more "
            "servers");
  }
}

}  // namespace

KeySection kvstore_keys() {
  const In in(&Config::kvstore);
  const auto steps = whole(0, std::int64_t{1} << 40, "a number of steps");
  return {
      .path = "kvstore",
      .keys =
          {
              in.key("type", &KvstoreConfig::type, store_type(),
                     "[what a step is](KVSTORE.md#what-a-worker-does); `local_*` are for the "
                     "devices of one process. MXNet's names are accepted: `local` for "
                     "`local_update_cpu`, `device` for `local_allreduce_device`, "
                     "`dist_sync_device` and `dist_device_sync` for `dist_sync`",
                     {.comment = "dist_sync | dist_async | dist_ssp, or a type for one process",
                      .shared = true}),
              in.key("staleness", &KvstoreConfig::staleness, steps,
                     "for `dist_ssp`: the steps that a worker may be ahead of the slowest one; 0 "
                     "is `dist_sync`",
                     {.comment = "dist_ssp: steps that a worker may be ahead of the slowest one",
                      .shared = true}),
              in.key(
                  "update", &KvstoreConfig::update, place_of_updates(),
                  "`server`: the servers run the optimizer and weights come back; `worker`: "
                  "mean gradients come back and each worker steps (only `dist_sync`, and "
                  "`dist_ssp` with staleness 0); `auto`: `server`, and `worker` where these types, "
                  "without snapshots, meet a model of more than 1000 trained tensors",
                  {.comment = "server: the optimizer runs on the servers | worker: on each "
                              "worker | auto: server, but worker from 1001 tensors on",
                   .shared = true}),
              in.key("replicas", &KvstoreConfig::replicas, whole(0, 1, "a count"),
                     "`1`: each value has a replica on another server, and no acknowledged update "
                     "is lost with a server",
                     {.comment = "1: each value has a replica on another server; none is lost "
                                 "with a server",
                      .shared = true}),
              in.key("memory_bytes", &KvstoreConfig::memory_bytes,
                     size(0, std::int64_t{1} << 50, "a size such as 512MiB"),
                     "what one server may take for values, optimizer, sums and replicas; a key "
                     "beyond it is refused. 0 = three quarters of the memory of its machine"),
              in.key("min_workers", &KvstoreConfig::min_workers, whole(0, 4096, "a count"),
                     "workers that the first step waits for; 0 = all nodes of the file"),
              in.key("start_wait_ms", &KvstoreConfig::start_wait, duration_above_0(),
                     "longest wait at the start: workers for the first step, a server for its "
                     "port",
                     {.comment = "longest wait at the start for the workers and the servers"}),
              in.key("lost_after_ms", &KvstoreConfig::lost_after, silence(),
                     "a worker or server that is silent for this long is left out. One that "
                     "computes for very long is left out after a limit that is learned from the "
                     "run"),
              in.key("servers", &KvstoreConfig::servers, node_list(),
                     "the servers, with the keys of [nodes](#nodes); required for the types "
                     "`dist_*`. The order must be the same in all files of a cluster",
                     {.shared = true}),
          },
      .check = check_kvstore};
}

KeySection kvstore_snapshots_keys() {
  const In in(&Config::kvstore, &KvstoreConfig::snapshots);
  return {.path = "kvstore.snapshots",
          .accepted = "{folder: PATH, every_ms: 300000, keep: 2}",
          .keys =
              {
                  in.key("folder", &KvstoreSnapshots::folder, secret_path(),
                         "the folder in which each server writes its part of a "
                         "[snapshot](KVSTORE.md#snapshots), relative to the cluster file; `{name}` "
                         "stands for the server. Required in this section"),
                  in.key("every_ms", &KvstoreSnapshots::every, duration_above_0(),
                         "time from the beginning of one snapshot to that of the next"),
                  in.key("keep", &KvstoreSnapshots::keep, whole(1, 32, "a count"),
                         "number of snapshots that stay on the disk"),
              },
          .required = "folder"};
}

KeySection kvstore_compression_keys() {
  const In in(&Config::kvstore, &KvstoreConfig::compression);
  return {
      .path = "kvstore.compression",
      .layout = Layout::flow,
      .accepted = "{type: none | fp16 | 2bit}",
      .keys =
          {
              in.key("type", &kvstore::CompressionOptions::type, choice(kvstore_compression_words),
                     "the format of gradients on the way to a server. What the format loses of a "
                     "gradient is added to the next one",
                     {.comment = "none | fp16 | 2bit: format of pushed gradients"}),
              in.key("threshold", &kvstore::CompressionOptions::threshold, threshold(),
                     "for `2bit`: every element is sent as −t, 0 or +t. `auto`: t is twice the "
                     "root mean square of each gradient"),
          },
      .check = check_compression};
}

}  // namespace dpwa::config
