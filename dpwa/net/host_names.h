#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/backoff.h"
#include "dpwa/base/time.h"
#include "dpwa/net/peer_address.h"

// Host names of peers that move to another address while this process runs. A name is resolved
// again when none of its addresses has led to the peer, on a thread that nobody waits for, because
// the resolver may block for long. The next connection uses the answer.

namespace dpwa::net {

// When a name is resolved again: a pause after each answer that brings nothing new, twice as long
// each time, and only so many names at once. Pure.
class ResolvePauses {
 public:
  static constexpr Backoff pauses{std::chrono::seconds(1), std::chrono::seconds(10), 0};
  static constexpr std::size_t most_at_once = 4;

  // Whether to ask now; if so, the question is under way until answered().
  bool begin(const std::string& host, TimePoint now);
  void answered(const std::string& host, bool is_news, TimePoint now);

 private:
  struct Entry {
    bool under_way = false;
    unsigned without_news = 0;  // answers in a row
    TimePoint next = TimePoint::min();
  };
  std::map<std::string, Entry> entries_;
  std::size_t under_way_ = 0;
};

// In which order to try the addresses of a peer that has several: those that did not answer when
// they were tried last come last. Of these the most recent one comes first, so that each is some
// time the last one, which is given all the time that is left. Pure.
class AddressOrder {
 public:
  std::vector<std::string> sorted(std::vector<std::string> addresses, std::uint16_t port) const;
  void tried(const std::string& address, std::uint16_t port, bool answered);

 private:
  static constexpr std::size_t most = 1024;  // above: everything is forgotten
  std::map<std::pair<std::string, std::uint16_t>, std::uint64_t> silent_;  // and when, as a number
  std::uint64_t tries_ = 0;
};

// In any order: name servers rotate them.
bool same_addresses(std::vector<std::string> some, std::vector<std::string> others);

// Where to dial the peer now: the last answer to its host name in this process, else the addresses
// that it was given, in the order to try. Any thread.
std::vector<std::string> addresses_now(const PeerAddress& peer);

// What became of an address of a peer that has several. Any thread.
void note_try(const std::string& address, std::uint16_t port, bool answered);

// None of addresses_now() has led to the peer. Any thread; never blocks.
void resolve_again(const PeerAddress& peer) noexcept;

}  // namespace dpwa::net
