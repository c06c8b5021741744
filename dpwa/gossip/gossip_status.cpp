#include "dpwa/gossip/gossip_status.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "dpwa/base/numbers.h"
#include "dpwa/config/names.h"
#include "dpwa/node/status_document.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// In the order of PeerFailure.
constexpr std::array<std::string_view, 13> failure_names{
    "timed_out", "unreachable", "protocol",      "rejected", "busy",      "not_ready", "stale",
    "unusable",  "distant",     "other_lineage", "unproven", "unchanged", "not_fresh"};
static_assert(failure_names[static_cast<std::size_t>(PeerFailure::not_fresh)] == "not_fresh");

std::string_view name_of(PeerFailure failure) {
  return failure_names.at(static_cast<std::size_t>(failure));
}

std::int64_t ms_until(TimePoint then, TimePoint now) {
  if (then <= now) return 0;
  return std::chrono::ceil<std::chrono::milliseconds>(then - now).count();
}

Json describe(const std::string& name, const PeerRecord& peer, double score, bool same_host,
              TimePoint now) {
  Json out;
  out["name"] = name;
  out["transport"] = same_host ? "same_host" : "tcp";
  out["score"] = number(score);
  out["attempts_ok"] = peer.pulls_ok;
  out["attempts_failed"] = peer.pulls_failed;
  out["failures_in_a_row"] = peer.failures;
  out["last_failure"] = peer.last_failure ? Json(name_of(*peer.last_failure)) : Json(nullptr);
  out["retry_in_ms"] = ms_until(std::max(peer.retry_at, peer.rests_until), now);
  out["incarnation"] = peer.incarnation;
  out["clock"] = number(peer.progress.clock);
  return out;
}

// The document must fit into one STATUS message, whatever the names of the members. A list ends at
// this number of bytes and states how many entries it leaves out.
constexpr std::size_t most_list_bytes = std::size_t{448} << 10;
static_assert(2 * most_list_bytes + (std::size_t{128} << 10) <= wire::max_status_bytes);

class BoundedList {
 public:
  void add(Json row) {
    constexpr std::size_t comma = 1;
    bytes_ += row.dump().size() + comma;
    if (bytes_ > most_list_bytes) {
      ++omitted_;
    } else {
      rows_.push_back(std::move(row));
    }
  }
  void move_to(Json& document, const std::string& key) {
    document[key] = std::move(rows_);
    document[key + "_omitted"] = omitted_;
  }

 private:
  Json rows_ = Json::array();
  std::size_t bytes_ = 0;
  std::uint64_t omitted_ = 0;
};

Json describe(const MemberClaim& claim, MemberStatus status, bool listed) {
  Json out;
  out["name"] = claim.name;
  out["status"] = to_string(status);
  out["address"] = claim.addresses.empty() ? Json(nullptr) : Json(claim.addresses.front());
  out["port"] = claim.port;
  out["incarnation"] = claim.incarnation;
  out["refutation"] = claim.refutation;
  out["listed"] = listed;
  return out;
}

// Names that only other nodes report may be invented: they are counted, not listed. A node that
// joins has reported itself, and is listed until it does not answer at its stated address.
bool is_listed(const Member& member) {
  const bool speaks = member.told && member.heard != TimePoint::min();
  return !member.claim.name.empty() && (member.vouched_for() || speaks);
}

// The own node first.
void describe_members(const MemberClaim& self, bool of_file, const std::vector<Member>& members,
                      Json& out) {
  BoundedList listed;
  std::uint64_t unverified = 0;
  listed.add(describe(self, self.status, of_file));
  for (const Member& member : members) {
    if (is_listed(member)) {
      listed.add(describe(member.claim, member.status(), member.listed));
    } else if (!member.claim.name.empty()) {
      ++unverified;
    }
  }
  listed.move_to(out, "members");
  out["members_unverified"] = unverified;
}

// Seven digits: a distance of a millionth of the model remains visible.
Json describe(const ModelSketch& sketch) {
  Json out = Json::array();
  for (const double sum : sketch.sums) out.push_back(with_digits(sum, 7));
  return out;
}

Json describe(const Firewall::Counters& counters) {
  Json out;
  out["distance_warned"] = counters.warned;
  out["distance_clipped"] = counters.clipped;
  out["distance_refused"] = counters.refused;
  out["not_finite"] = counters.not_finite;
  return out;
}

}  // namespace

std::string gossip_status(const LocalNode& local, const PeerTable& table, const Firewall& firewall,
                          const PairLedger* ledger, const std::function<bool(PeerId)>& same_host,
                          const ModelSketch* sketch, TimePoint now) {
  Json out;
  if (local.stale.load()) out["state"] = "stale";
  const Progress progress = local.store.progress();
  out["clock"] = number(progress.clock);
  out["loss"] = number(progress.loss);
  out["published"] = progress.version;
  out["publishes_skipped"] = local.store.skipped();
  out["encoding"] = name_of(local.codec);
  out["model_bytes"] = local.manifest.total_bytes();
  if (sketch) out["sketch"] = describe(*sketch);
  const Traffic& traffic = local.traffic;
  out["pulls_begun"] = traffic.pulls_begun.load();
  out["bytes_received"] = traffic.bytes_received.load();
  out["snapshots_served"] = traffic.snapshots_served.load();
  out["bytes_served"] = traffic.bytes_served.load();
  out["same_host_pulls"] = traffic.same_host_pulls.load();
  out["same_host_served"] = traffic.same_host_served.load();
  out["same_host_leases_expired"] = traffic.same_host_leases_expired.load();
  out["same_host_reads_discarded"] = traffic.same_host_reads_discarded.load();
  std::uint64_t passed_over = 0;
  const std::vector<Member> members = local.members->all();
  BoundedList peers;
  for (PeerId peer = 0; peer < table.size(); ++peer) {
    passed_over += ledger && ledger->acceptance(peer) == 0 ? 1 : 0;
    const bool listed = peer < members.size() && is_listed(members[peer]) &&
                        members[peer].claim.name == table.name(peer);
    if (!listed) continue;
    Json row =
        describe(table.name(peer), table.at(peer), table.score(peer, now), same_host(peer), now);
    row["ledger_balance"] = ledger ? number(ledger->balance(peer)) : Json(nullptr);
    row["ledger_chance"] = ledger ? number(ledger->acceptance(peer)) : Json(nullptr);
    peers.add(std::move(row));
  }
  out["pulls_ok"] = traffic.pulls_ok.load();
  out["pulls_failed"] = traffic.pulls_failed.load();
  out["attempts_ok"] = table.pulls_ok();  // of all pulls, at every peer that they asked
  out["attempts_failed"] = table.pulls_failed();
  out["firewall"] = describe(firewall.counters());
  out["ledger_passed_over"] = ledger ? Json(passed_over) : Json(nullptr);
  peers.move_to(out, "peers");
  describe_members(local.members->self(), local.of_file, members, out);
  return status_document(local, out);
}

}  // namespace dpwa
