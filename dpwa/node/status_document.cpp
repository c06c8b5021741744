#include "dpwa/node/status_document.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "dpwa/version.h"

namespace dpwa {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string_view name_of(wire::NodeState state) {
  switch (state) {
    case wire::NodeState::joining:
      return "joining";
    case wire::NodeState::ready:
      return "training";
    case wire::NodeState::finished:
      return "finished";
  }
  return "unknown";
}

std::string_view name_of(PeerFailure failure) {
  switch (failure) {
    case PeerFailure::timed_out:
      return "timed_out";
    case PeerFailure::unreachable:
      return "unreachable";
    case PeerFailure::protocol:
      return "protocol";
    case PeerFailure::rejected:
      return "rejected";
    case PeerFailure::busy:
      return "busy";
    case PeerFailure::not_ready:
      return "not_ready";
    case PeerFailure::stale:
      return "stale";
    case PeerFailure::unusable:
      return "unusable";
    case PeerFailure::distant:
      return "distant";
    case PeerFailure::unchanged:
      return "unchanged";
  }
  return "unknown";
}

std::int64_t ms_until(TimePoint then, TimePoint now) {
  if (then <= now) return 0;
  return std::chrono::ceil<std::chrono::milliseconds>(then - now).count();
}

Json describe(const PeerRecord& peer, double score, const Quarantine::Record& offender,
              bool same_host, TimePoint now) {
  Json out;
  out["name"] = peer.name;
  out["transport"] = same_host ? "same_host" : "tcp";
  out["score"] = number(score);
  out["pulls_ok"] = peer.pulls_ok;
  out["pulls_failed"] = peer.pulls_failed;
  out["last_failure"] = peer.last_failure ? Json(name_of(*peer.last_failure)) : Json(nullptr);
  out["retry_in_ms"] = ms_until(peer.retry_at, now);
  out["offences"] = offender.offences;
  out["quarantines"] = offender.quarantines;
  out["quarantined_ms"] = ms_until(offender.until, now);
  out["incarnation"] = peer.incarnation;
  out["clock"] = number(peer.progress.clock);
  return out;
}

// So many of each list at most: the document must fit into one STATUS.
constexpr std::size_t most_listed = 1000;

Json describe(const MemberClaim& claim, MemberStatus status, bool seed) {
  Json out;
  out["name"] = claim.name;
  out["status"] = to_string(status);
  out["address"] = claim.addresses.empty() ? Json(nullptr) : Json(claim.addresses.front());
  out["port"] = claim.port;
  out["incarnation"] = claim.incarnation;
  out["refutation"] = claim.refutation;
  out["seed"] = seed;
  return out;
}

// The own node first.
Json describe_members(const Members& members) {
  Json out = Json::array();
  const MemberClaim self = members.self();
  out.push_back(describe(self, self.status, false));
  for (const Member& member : members.all()) {
    if (out.size() >= most_listed) break;
    if (!member.claim.name.empty())
      out.push_back(describe(member.claim, member.status(), member.seed));
  }
  return out;
}

Json describe(const Firewall::Counters& counters, std::uint64_t quarantined) {
  Json out;
  out["distance_warned"] = counters.warned;
  out["distance_clipped"] = counters.clipped;
  out["distance_refused"] = counters.refused;
  out["not_finite"] = counters.not_finite;
  out["quarantined_peers"] = quarantined;  // at this moment
  return out;
}

}  // namespace

std::string status_document(const LocalNode& local, const PeerTable& table,
                            const Firewall& firewall, const std::function<bool(PeerId)>& same_host,
                            TimePoint now) {
  Json out;
  out["schema"] = 1;
  out["version"] = version();
  out["cluster"] = local.cluster;
  out["node"] = local.name;
  out["incarnation"] = local.incarnation;
  out["state"] = local.stale.load() ? "stale" : name_of(local.state.load());
  const auto latest = local.store.latest();
  const Progress progress = latest ? latest->progress() : Progress{};
  out["clock"] = number(progress.clock);
  out["loss"] = number(progress.loss);
  out["published"] = progress.version;
  out["publishes_skipped"] = local.store.skipped();
  out["encoding"] = name_of(local.codec);
  out["model_bytes"] = local.manifest.total_bytes();
  const Traffic& traffic = local.traffic;
  out["pulls_begun"] = traffic.pulls_begun.load();
  out["bytes_received"] = traffic.bytes_received.load();
  out["snapshots_served"] = traffic.snapshots_served.load();
  out["bytes_served"] = traffic.bytes_served.load();
  out["same_host_pulls"] = traffic.same_host_pulls.load();
  out["same_host_served"] = traffic.same_host_served.load();
  out["same_host_leases_expired"] = traffic.same_host_leases_expired.load();
  out["same_host_reads_discarded"] = traffic.same_host_reads_discarded.load();
  out["connections_accepted"] = traffic.connections_accepted.load();
  out["connections_refused"] = traffic.connections_refused.load();
  out["protocol_errors"] = traffic.protocol_errors.load();
  out["security_failures"] = traffic.security_failures.load();
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  std::uint64_t quarantined = 0;
  Json peers = Json::array();
  for (PeerId peer = 0; peer < table.size(); ++peer) {
    ok += table.at(peer).pulls_ok;
    failed += table.at(peer).pulls_failed;
    quarantined += firewall.record(peer).until > now ? 1 : 0;
    if (table.at(peer).name.empty() || peers.size() >= most_listed) continue;
    peers.push_back(describe(table.at(peer), table.score(peer, now), firewall.record(peer),
                             same_host(peer), now));
  }
  out["pulls_ok"] = ok;
  out["pulls_failed"] = failed;
  out["firewall"] = describe(firewall.counters(), quarantined);
  out["peers"] = std::move(peers);
  out["members"] = describe_members(*local.members);
  return out.dump();
}

}  // namespace dpwa
