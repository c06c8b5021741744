#include "dpwa/net/name_guard.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "dpwa/base/on_exit.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/local_process.h"

namespace dpwa {

namespace asio = boost::asio;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The incarnation of the node that answers there under this name; 0: none does.
asio::awaitable<std::uint64_t> ask(const std::string& cluster, const PeerAddress& address,
                                   Duration patience, Security* security) {
  net::Connection connection(co_await asio::this_coro::executor);
  const TimePoint until = SteadyClock::now() + patience;
  const net::Deadline deadline(connection.stream().get_executor(), until,
                               [&connection] { connection.close(); });
  const auto welcome = co_await net::open_as_observer(connection, cluster, address, security);
  co_return welcome && welcome->node == address.name ? welcome->incarnation : 0;
}

}  // namespace

NameGuard::Verdict NameGuard::judge(const MemberClaim& known, std::uint64_t caller,
                                    std::uint64_t answering) {
  if (answering == 0 || answering == caller) return {};
  return {false, "the name '" + known.name + "' is taken: another process answers to it at " +
                     known.addresses.front() + " port " + std::to_string(known.port) +
                     "; give this one a name of its own, or stop the other"};
}

asio::awaitable<NameGuard::Verdict> NameGuard::examine(std::string name, std::uint64_t incarnation,
                                                       std::string network) {
  thread_.check();
  Members& members = *local_.members;
  const auto known = members.find(name);
  const bool settled = !members.exchanges() || !known || known->incarnation == 0 ||
                       known->incarnation == incarnation || known->addresses.empty() ||
                       known->status == MemberStatus::dead || known->status == MemberStatus::left;
  Verdict verdict;
  if (settled) co_return verdict;
  const TimePoint now = SteadyClock::now();
  std::erase_if(answers_, [&](const auto& entry) { return now - entry.second.at > answer_holds; });
  if (const auto answer = answers_.find(name); answer != answers_.end()) {
    verdict = judge(*known, incarnation, answer->second.incarnation);
    verdict.refusal.clear();  // only this connection ends: the state may have changed since
    co_return verdict;
  }
  const auto of_network = std::ranges::count(under_way_, network);
  if (under_way_.size() >= most_at_once || of_network >= most_of_a_network) {
    verdict.admitted = false;
    co_return verdict;
  }
  under_way_.push_back(network);
  const OnExit over([this, &network] { under_way_.erase(std::ranges::find(under_way_, network)); });
  const PeerAddress address{name, known->addresses, known->port};
  const std::uint64_t answering =
      co_await ask(local_.cluster, address, patience, local_.security.get());
  answers_[name] = {SteadyClock::now(), answering};
  if (answering != 0) members.reached(name, answering);
  verdict = judge(*known, incarnation, answering);
  co_return verdict;
}

}  // namespace dpwa
