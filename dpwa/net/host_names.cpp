#include "dpwa/net/host_names.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "dpwa/base/resolve_host.h"
#include "dpwa/base/threads.h"
#include "dpwa/log/log.h"

namespace dpwa::net {
namespace {

using SteadyClock = std::chrono::steady_clock;

// What a thread that is left alone at the end of the process may still use: never destroyed.
struct Names {
  Mutex mutex;
  ResolvePauses pauses DPWA_GUARDED_BY(mutex);
  AddressOrder order DPWA_GUARDED_BY(mutex);
  // For the log, which such a thread must not use.
  std::vector<std::string> news DPWA_GUARDED_BY(mutex);
};

Names& names() {
  static Names& all = *new Names;
  return all;
}

std::string joined(const std::vector<std::string>& addresses) {
  std::string text;
  for (const std::string& address : addresses) text += (text.empty() ? "" : ", ") + address;
  return text;
}

void answered(const std::string& host, const std::string& news) {
  Names& all = names();
  const MutexLock lock(all.mutex);
  all.pauses.answered(host, !news.empty(), SteadyClock::now());
  if (!news.empty()) all.news.push_back(news);
}

void ask(const std::string& host, const std::vector<std::string>& before) {
  const Resolved resolved = resolve_host(host);
  const bool is_news = !resolved.addresses.empty() && !same_addresses(resolved.addresses, before);
  const bool was_unknown = before == std::vector{host};
  answered(host, is_news ? "host " + host + " is now at " + joined(resolved.addresses) +
                               (was_unknown ? "" : ", before at " + joined(before))
                         : "");
}

// The thread of one question.
void ask_aside(const std::string& host, const std::vector<std::string>& before) noexcept {
  try {
    ask(host, before);
  } catch (const std::exception&) {
    answered(host, "");
  }
}

void tell_news() {
  Names& all = names();
  std::vector<std::string> news;
  {
    const MutexLock lock(all.mutex);
    news = std::exchange(all.news, {});
  }
  for (const std::string& line : news) log(LogLevel::info, "net", line);
}

}  // namespace

std::vector<std::string> AddressOrder::sorted(std::vector<std::string> addresses,
                                              std::uint16_t port) const {
  // Those that did not answer come after all others (0), the most recent one first. Equal keys keep
  // their order.
  std::multimap<std::uint64_t, std::string> by_silence;
  for (std::string& address : addresses) {
    const auto found = silent_.find({address, port});
    const std::uint64_t key = found == silent_.end() ? 0 : ~found->second;
    by_silence.emplace(key, std::move(address));
  }
  std::ranges::transform(by_silence, addresses.begin(),
                         [](auto& entry) { return std::move(entry.second); });
  return addresses;
}

void AddressOrder::tried(const std::string& address, std::uint16_t port, bool answered) {
  if (answered) {
    silent_.erase({address, port});
    return;
  }
  if (silent_.size() >= most) silent_.clear();
  silent_[{address, port}] = ++tries_;
}

bool same_addresses(std::vector<std::string> some, std::vector<std::string> others) {
  std::ranges::sort(some);
  std::ranges::sort(others);
  return some == others;
}

bool ResolvePauses::begin(const std::string& host, TimePoint now) {
  Entry& entry = entries_[host];
  if (entry.under_way || now < entry.next || under_way_ >= most_at_once) return false;
  if (entry.next != TimePoint::min() && now - entry.next > pauses.max) entry.without_news = 0;
  entry.under_way = true;
  ++under_way_;
  return true;
}

void ResolvePauses::answered(const std::string& host, bool is_news, TimePoint now) {
  Entry& entry = entries_[host];
  if (std::exchange(entry.under_way, false)) --under_way_;
  if (is_news) entry.without_news = 0;
  entry.next = now + pauses.nominal(++entry.without_news);
}

std::vector<std::string> addresses_now(const PeerAddress& peer) {
  std::vector<std::string> addresses = peer.addresses;
  if (!peer.host.empty()) {
    tell_news();
    if (auto last = last_addresses(peer.host)) addresses = *std::move(last);
  }
  if (addresses.size() < 2) return addresses;
  Names& all = names();
  const MutexLock lock(all.mutex);
  return all.order.sorted(std::move(addresses), peer.port);
}

void note_try(const std::string& address, std::uint16_t port, bool answered) {
  Names& all = names();
  const MutexLock lock(all.mutex);
  all.order.tried(address, port, answered);
}

void resolve_again(const PeerAddress& peer) noexcept {
  try {
    if (peer.host.empty() || is_numeric_host(peer.host)) return;
    Names& all = names();
    {
      const MutexLock lock(all.mutex);
      if (!all.pauses.begin(peer.host, SteadyClock::now())) return;
    }
    try {
      start_background_thread([host = peer.host, before = addresses_now(peer)] {
        ask_aside(host, before);
      }).detach();
    } catch (const std::exception&) {  // no thread or memory is left: later
      answered(peer.host, "");
    }
  } catch (const std::exception&) {
    return;  // no memory: later
  }
}

}  // namespace dpwa::net
