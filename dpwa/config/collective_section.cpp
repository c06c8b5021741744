#include <limits>

#include "dpwa/config/sections.h"

namespace dpwa::config {
namespace {

CollectiveEngine read_engine(const Field& field) {
  const std::string name = field.choice({"auto", "gloo", "nccl", "mpi"});
  if (name == "gloo") return CollectiveEngine::gloo;
  if (name == "nccl") return CollectiveEngine::nccl;
  return name == "mpi" ? CollectiveEngine::mpi : CollectiveEngine::automatic;
}

GradientCompression read_compression(const Field& field) {
  const std::string name = field.choice({"none", "fp16", "bf16"});
  if (name == "fp16") return GradientCompression::fp16;
  return name == "bf16" ? GradientCompression::bf16 : GradientCompression::none;
}

OnLostRank read_on_lost_rank(const Field& field) {
  const std::string name = field.choice({"stop", "shrink", "gossip"});
  if (name == "shrink") return OnLostRank::shrink;
  return name == "gossip" ? OnLostRank::gossip : OnLostRank::stop;
}

std::uint64_t read_bytes(const Field& field) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  return static_cast<std::uint64_t>(field.size_bytes(0, most, "a size of at most 1GiB"));
}

}  // namespace

const std::vector<std::string>& collective_keys() {
  static const std::vector<std::string> keys = {
      "engine",          "first_bucket_bytes", "bucket_bytes",  "compression",
      "average_buffers", "plaintext",          "start_wait_ms", "hung_after_ms",
      "stall_warn_ms",   "lost_after_ms",      "on_lost_rank",  "minority"};
  return keys;
}

void read_collective(const Section& section, CollectiveConfig& collective) {
  section.accept_only(collective_keys());
  if (const Field* field = section.find("engine")) collective.engine = read_engine(*field);
  if (const Field* field = section.find("first_bucket_bytes"))
    collective.first_bucket_bytes = read_bytes(*field);
  if (const Field* field = section.find("bucket_bytes"))
    collective.bucket_bytes = read_bytes(*field);
  if (const Field* field = section.find("compression"))
    collective.compression = read_compression(*field);
  if (const Field* field = section.find("average_buffers"))
    collective.average_buffers = field->boolean();
  if (const Field* field = section.find("plaintext")) collective.plaintext = field->boolean();
  if (const Field* field = section.find("start_wait_ms"))
    collective.start_wait = field->positive_ms();
  if (const Field* field = section.find("hung_after_ms"))
    collective.hung_after = field->non_negative_ms();
  if (const Field* field = section.find("stall_warn_ms"))
    collective.stall_warn = field->non_negative_ms();
  if (const Field* field = section.find("lost_after_ms"))
    collective.lost_after = field->non_negative_ms();
  if (const Field* field = section.find("on_lost_rank"))
    collective.on_lost_rank = read_on_lost_rank(*field);
  if (const Field* field = section.find("minority")) {
    collective.minority =
        field->choice({"stop", "gossip"}) == "gossip" ? Minority::gossip : Minority::stop;
  }
  if (collective.engine == CollectiveEngine::mpi && collective.on_lost_rank != OnLostRank::stop)
    section.need("on_lost_rank", "stop")
        .fail("engine mpi cannot go on without a rank; accepted: stop, or engine gloo");
}

}  // namespace dpwa::config
