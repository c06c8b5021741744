#include "dpwa/net/members.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <utility>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/time.h"
#include "dpwa/net/host_names.h"
#include "dpwa/net/network.h"
#include "dpwa/wire/messages.h"

namespace dpwa {
namespace {

static_assert(Membership::max_claims <= wire::max_member_entries);
static_assert(Membership::max_refutation == wire::max_refutation);

TimePoint now() {
  return std::chrono::steady_clock::now();
}

bool only_of_this_host(const std::string& text) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  return error || address.is_loopback() || address.is_unspecified();
}

bool only_of_this_host(const MemberClaim& claim) {
  return std::ranges::all_of(claim.addresses,
                             [](const auto& address) { return only_of_this_host(address); });
}

bool only_of_this_link(const std::string& text) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  return !error && address.is_v6() && address.to_v6().is_link_local();
}

bool of_no_use_elsewhere(const MemberClaim& claim) {
  return std::ranges::all_of(claim.addresses, [](const auto& address) {
    return only_of_this_host(address) || only_of_this_link(address);
  });
}

void leave_out_scopes(MemberClaim& claim) {
  for (std::string& address : claim.addresses)
    address.resize(std::min(address.find('%'), address.size()));
}

std::vector<MemberClaim> names_alone(const std::vector<std::string>& names) {
  std::vector<MemberClaim> claims;
  for (const std::string& name : names) claims.push_back({.name = name, .addresses = {}});
  return claims;
}

MembershipOptions closed() {
  MembershipOptions options;
  options.open = false;
  return options;
}

}  // namespace

void keep_believable(MemberExchange& exchange, const std::string& address, std::uint64_t now_us) {
  constexpr std::uint64_t day_us = 86'400'000'000;
  const bool from_here = only_of_this_host(address);
  bool first = true;
  std::erase_if(exchange.claims, [&](MemberClaim& claim) {
    if (std::exchange(first, false)) {
      if (!from_here && of_no_use_elsewhere(claim)) claim.addresses = {address};
      return false;
    }
    return claim.incarnation > now_us + day_us || (!from_here && only_of_this_host(claim));
  });
}

void keep_tellable(MemberExchange& exchange) {
  bool first = true;
  std::erase_if(exchange.claims, [&](MemberClaim& claim) {
    leave_out_scopes(claim);
    if (wire::fault_of(claim).empty()) {
      first = false;
      return false;
    }
    if (!std::exchange(first, false)) return true;
    claim.addresses = {"::"};
    return false;
  });
}

Members::Members(const std::string& self, std::uint64_t incarnation,
                 const std::vector<std::string>& peers)
    : exchanges_(false),
      membership_({.name = self, .addresses = {}, .incarnation = incarnation}, names_alone(peers),
                  closed()),
      random_(0),
      version_(membership_.version()) {}

Members::Members(MemberClaim self, std::vector<MemberClaim> listed, MembershipOptions options,
                 std::uint64_t random_seed)
    : exchanges_(true),
      membership_(std::move(self), std::move(listed), options),
      random_(random_seed),
      version_(membership_.version()) {}

bool Members::exchange_is_due(const std::string& to) const {
  const MutexLock lock(mutex_);
  return membership_.exchange_is_due(to, now());
}

MemberExchange Members::request(const std::string& to) {
  const MutexLock lock(mutex_);
  MemberExchange exchange = membership_.request(to, now());
  keep_tellable(exchange);
  return exchange;
}

MemberExchange Members::answer(const std::string& to, const MemberExchange& request) {
  const MutexLock lock(mutex_);
  MemberExchange exchange = membership_.answer(to, request, now());
  keep_tellable(exchange);
  return exchange;
}

void Members::merge(const std::string& from, std::uint64_t incarnation, MemberExchange exchange,
                    const std::string& address) {
  keep_believable(exchange, address, wall_clock_us());
  const MutexLock lock(mutex_);
  membership_.merge(from, incarnation, exchange, now());
  changed();
}

bool Members::merge_answer(const std::string& from, std::uint64_t incarnation,
                           MemberExchange exchange, const std::string& address) {
  keep_believable(exchange, address, wall_clock_us());
  const MutexLock lock(mutex_);
  const bool more = membership_.merge_answer(from, incarnation, exchange, now());
  changed();
  return more;
}

void Members::heard(const std::string& name, std::uint64_t incarnation) {
  if (!exchanges_) return;
  const MutexLock lock(mutex_);
  membership_.heard(name, incarnation, now());
  changed();
}

void Members::reached(const std::string& name, std::uint64_t incarnation) {
  if (!exchanges_) return;
  const MutexLock lock(mutex_);
  membership_.reached(name, incarnation, now());
  changed();
}

void Members::failed(const std::string& name) {
  if (!exchanges_) return;
  const MutexLock lock(mutex_);
  membership_.failed(name, now());
  changed();
}

void Members::keep(const std::string& name) {
  const MutexLock lock(mutex_);
  membership_.keep(name);
  changed();
}

void Members::list(const MemberClaim& claim) {
  const MutexLock lock(mutex_);
  membership_.list(claim, now());
  changed();
}

void Members::unlist(const std::string& name) {
  const MutexLock lock(mutex_);
  membership_.unlist(name);
  hosts_.erase(name);
  changed();
}

void Members::follow(const std::string& name, const std::string& host) {
  const bool is_name = !host.empty() && !is_numeric_host(host);
  const MutexLock lock(mutex_);
  hosts_.erase(name);
  if (is_name) hosts_[name] = host;
}

std::string Members::host_of(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? "" : found->second;
}

void Members::take_up_hosts() {
  for (const auto& [name, host] : hosts_) {
    auto addresses = last_addresses(host);
    const Member* member = membership_.member(name);
    if (!addresses || member == nullptr) continue;
    MemberClaim moved = member->claim;
    addresses->resize(std::min(addresses->size(), wire::max_member_addresses));
    if (net::same_addresses(*addresses, moved.addresses)) continue;
    moved.addresses = std::move(*addresses);
    membership_.list(moved, now());
  }
}

void Members::leave() {
  const MutexLock lock(mutex_);
  membership_.leave();
}

std::vector<MemberClaim> Members::tick() {
  const MutexLock lock(mutex_);
  take_up_hosts();
  membership_.tick(now());
  changed();
  return membership_.to_ask(now(), random_);
}

std::vector<MemberClaim> Members::some_running(std::size_t most) {
  const MutexLock lock(mutex_);
  return membership_.some_running(most, random_);
}

Membership::Admission Members::admission(const std::string& name) const {
  const MutexLock lock(mutex_);
  return membership_.admission(name);
}

std::optional<MemberClaim> Members::find(const std::string& name) const {
  const MutexLock lock(mutex_);
  const Member* member = membership_.member(name);
  if (member == nullptr) return std::nullopt;
  MemberClaim claim = member->claim;
  claim.status = member->status();
  return claim;
}

bool Members::is_listed(const std::string& name) const {
  const MutexLock lock(mutex_);
  const Member* member = membership_.member(name);
  return member != nullptr && member->listed;
}

bool Members::is_listed_at(const std::string& name, const std::string& network) const {
  const MutexLock lock(mutex_);
  const Member* member = membership_.member(name);
  if (member == nullptr || !member->listed) return false;
  return member->claim.addresses.empty() ||
         std::ranges::any_of(member->claim.addresses, [&](const std::string& address) {
           return net::network_of(address) == network;
         });
}

MemberClaim Members::self() const {
  const MutexLock lock(mutex_);
  return membership_.self();
}

std::vector<Member> Members::all() const {
  const MutexLock lock(mutex_);
  return membership_.members();
}

std::size_t Members::size() const {
  const MutexLock lock(mutex_);
  return membership_.members().size();
}

std::optional<MemberClaim> Members::claim_at(PeerId place) const {
  const MutexLock lock(mutex_);
  const auto& members = membership_.members();
  return place < members.size() ? std::optional(members[place].claim) : std::nullopt;
}

Members::News Members::since(std::uint64_t version) const {
  const MutexLock lock(mutex_);
  News news{membership_.version(), {}};
  for (const PeerId place : membership_.changed_since(version))
    news.members.emplace_back(place, membership_.members()[place]);
  return news;
}

std::vector<PeerId> Members::running_listed() const {
  const MutexLock lock(mutex_);
  std::vector<PeerId> listed;
  const auto& members = membership_.members();
  for (PeerId place = 0; place < members.size(); ++place) {
    const MemberStatus status = members[place].status();
    const bool runs = status == MemberStatus::alive || status == MemberStatus::suspect;
    if (members[place].listed && runs) listed.push_back(place);
  }
  return listed;
}

}  // namespace dpwa
