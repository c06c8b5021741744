#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "dpwa/base/median.h"
#include "dpwa/diagnosis/rules.h"

namespace dpwa::diagnosis {
namespace {

// Only the end that sends much has round trips of the link alone: what answers a request may do so
// late, and its acknowledgement goes with the answer.
constexpr double least_segments = 10;
constexpr double least_bytes = 8e3;
constexpr double slow_ms = 8;
constexpr double much_slower = 4;   // than the median of the others
constexpr double much_lost = 0.01;  // a process that stands still for a moment costs less
constexpr double least_lost = 4;
// Of a pair that lets each other rest, since its connections began: the smoothed round trip is of
// several then.
constexpr double settled_segments = 20;
constexpr double lost_at_rest = 2;
constexpr unsigned rests_seen = 3;
constexpr double much_waited = 0.3;
constexpr std::uint64_t sure = 3;  // failures in a row

using Pair = std::pair<std::string, std::string>;  // in the order of the names

struct PairLink {
  std::optional<double> rtt_ms;
  double steady_ms = 0;
  double segments = 0;
  double again = 0;
  bool is_at_rest = false;
};

// Where acknowledgements wait for an answer now and then, the mean of round trips is long, and so
// is their deviation from it.
bool takes_long(const PairLink& link) {
  return link.rtt_ms && std::min(*link.rtt_ms, link.steady_ms) >= slow_ms;
}

bool is_lossy(const PairLink& link) {
  const double least = link.is_at_rest && !takes_long(link) ? lost_at_rest : least_lost;
  return link.again >= least && link.again >= much_lost * link.segments;
}

unsigned rests(const Interval& interval, const std::string& of, const std::string& peer) {
  const auto found = interval.active.find(of);
  if (found == interval.active.end()) return 0;
  const auto seen = found->second.rests.find(peer);
  return seen == found->second.rests.end() ? 0 : seen->second;
}

// Each finds the other late, and not its other peers: so it is the way between them, which both use
// too rarely to show it in this time.
bool rest_from_each_other(const Interval& interval, const Pair& pair) {
  const unsigned one = rests(interval, pair.first, pair.second);
  const unsigned other = rests(interval, pair.second, pair.first);
  return one > 0 && other > 0 && one + other >= rests_seen;
}

// Then no network is between them: where it takes long, they wait for processors.
bool share_a_host(const Interval& interval, const Link& link) {
  const auto from = interval.active.find(link.from);
  const auto to = interval.active.find(link.to);
  return from != interval.active.end() && to != interval.active.end() &&
         from->second.last.host == to->second.last.host;
}

// Both directions of all connections of a pair together.
std::map<Pair, PairLink> pairs_of(const Interval& interval) {
  std::map<Pair, PairLink> pairs;
  for (const Link& link : interval.links) {
    if (share_a_host(interval, link)) continue;
    const auto [found, is_first] = pairs.try_emplace(std::minmax(link.from, link.to));
    PairLink& pair = found->second;
    if (is_first) pair.is_at_rest = rest_from_each_other(interval, found->first);
    pair.segments += link.segments;
    pair.again += link.segments_again;
    const bool moves = link.segments >= least_segments && link.bytes >= least_bytes;
    const bool has_moved = link.all_segments >= settled_segments && link.all_bytes >= least_bytes;
    if (!moves && !(pair.is_at_rest && has_moved)) continue;
    pair.rtt_ms = std::max(pair.rtt_ms.value_or(0), link.rtt_ms);
    pair.steady_ms = std::max(pair.steady_ms, link.steady_ms);
  }
  return pairs;
}

double share_of_waits(const Interval& interval, const std::string& name) {
  const auto found = interval.active.find(name);
  if (found == interval.active.end() || found->second.seconds <= 0) return 0;
  return found->second.wait_s / found->second.seconds;
}

struct Suspect {
  Pair pair;
  double share = 0;
  double measure = 0;  // milliseconds, or the share that was lost
};

// A node that is an end of all of them, and has no link without it: the fault is at that node.
std::string common_end(const std::vector<Suspect>& suspects, const std::map<Pair, PairLink>& all) {
  for (const std::string& end : {suspects.front().pair.first, suspects.front().pair.second}) {
    const auto touches = [&end](const Pair& pair) {
      return pair.first == end || pair.second == end;
    };
    const auto links =
        std::ranges::count_if(all, [&](const auto& one) { return touches(one.first); });
    const bool is_common = std::ranges::all_of(
        suspects, [&](const Suspect& suspect) { return touches(suspect.pair); });
    if (is_common && suspects.size() >= 2 && static_cast<std::size_t>(links) == suspects.size())
      return end;
  }
  return "";
}

Finding finding_of(Cause cause, std::string where, double share, double measure) {
  if (cause == Cause::lossy_link) {
    return {cause, std::move(where), share, percent(measure) + " of the segments were sent again",
            "look for a bad cable or port, a full queue or a rate limit on the way: ip -s link, tc "
            "-s qdisc"};
  }
  return {cause, std::move(where), share, "a round trip takes " + milliseconds(measure / 1e3),
          "look at the way between these hosts, and at rate limits; a smaller encoding "
          "(transport.encoding) needs less of it"};
}

void report(Cause cause, const std::vector<Suspect>& suspects, const std::map<Pair, PairLink>& all,
            Findings& findings) {
  if (suspects.empty()) return;
  const auto worst = *std::ranges::max_element(suspects, {}, &Suspect::measure);
  if (const std::string end = common_end(suspects, all); !end.empty()) {
    findings.push_back(finding_of(cause, end + " (all its links)", worst.share, worst.measure));
    return;
  }
  for (const Suspect& suspect : suspects)
    findings.push_back(finding_of(cause, suspect.pair.first + " - " + suspect.pair.second,
                                  suspect.share, suspect.measure));
}

double usual_rtt_ms(const std::map<Pair, PairLink>& pairs, const Pair& but) {
  std::vector<double> times;
  for (const auto& [pair, link] : pairs) {
    if (pair != but && link.rtt_ms) times.push_back(*link.rtt_ms);
  }
  return times.empty() ? -1 : lower_median(times);
}

void judge_round_trips(const Interval& interval, const std::map<Pair, PairLink>& pairs,
                       Findings& findings) {
  std::vector<Suspect> suspects;
  for (const auto& [pair, link] : pairs) {
    if (!takes_long(link) || is_lossy(link)) continue;
    const double usual_ms = usual_rtt_ms(pairs, pair);
    const double waited =
        std::max(share_of_waits(interval, pair.first), share_of_waits(interval, pair.second));
    // Of an only link: where one node is slow, that one does not wait.
    const double both_waited =
        std::min(share_of_waits(interval, pair.first), share_of_waits(interval, pair.second));
    const bool is_slow =
        usual_ms < 0 ? both_waited >= much_waited : *link.rtt_ms >= much_slower * usual_ms;
    if (is_slow) suspects.push_back({pair, std::max(0.1, waited), *link.rtt_ms});
  }
  report(Cause::slow_link, suspects, pairs, findings);
}

void judge_losses(const Interval& interval, const std::map<Pair, PairLink>& pairs,
                  Findings& findings) {
  std::vector<Suspect> suspects;
  for (const auto& [pair, link] : pairs) {
    if (!is_lossy(link)) continue;
    const double waited =
        std::max(share_of_waits(interval, pair.first), share_of_waits(interval, pair.second));
    suspects.push_back({pair, std::max(0.2, waited), link.again / link.segments});
  }
  report(Cause::lossy_link, suspects, pairs, findings);
}

// One node does not reach another one, which reaches it, and answers.
void judge_directions(const Interval& interval, Findings& findings) {
  for (const auto& [name, activity] : interval.active) {
    for (const auto& [other, peer] : activity.peers) {
      const auto back = interval.active.find(other);
      if (peer.ok > 0 || peer.failures < sure || !peer.is_unreachable ||
          back == interval.active.end())
        continue;
      const auto reached = back->second.last.peers.find(name);
      if (reached == back->second.last.peers.end() || reached->second.ok == 0 ||
          reached->second.failures > 0)
        continue;
      findings.push_back({Cause::one_way_link, name + " -> " + other, 0.3,
                          "the last " + std::to_string(peer.failures) + " pulls of " + name +
                              " from " + other + " failed, and " + other + " pulls from " + name,
                          "look for a packet filter on the host of " + other +
                              ", and whether its address in the cluster file is the one that " +
                              name + " can reach"});
    }
  }
}

}  // namespace

void judge_links(const Interval& interval, Findings& findings) {
  const auto pairs = pairs_of(interval);
  judge_losses(interval, pairs, findings);
  judge_round_trips(interval, pairs, findings);
  judge_directions(interval, findings);
}

}  // namespace dpwa::diagnosis
