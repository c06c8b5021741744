#include "dpwa/collectives/link_former.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <list>
#include <utility>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/invariant.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/resolve_host.h"
#include "dpwa/collectives/group.h"
#include "dpwa/net/accept_loop.h"
#include "dpwa/net/admission.h"
#include "dpwa/net/connect.h"
#include "dpwa/net/connection_limits.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/network.h"
#include "dpwa/net/stream.h"
#include "dpwa/net/tls_records.h"

namespace dpwa::collectives {

namespace asio = boost::asio;
using asio::ip::tcp;
using net::Failure;
using net::Stream;

namespace {

constexpr auto pause_between_calls = std::chrono::milliseconds(20);
constexpr auto between_looks = std::chrono::milliseconds(50);
// Callers that have not proved that they are members, beyond the members themselves.
constexpr std::uint32_t most_strangers = 64;

// Where the text names a host, its addresses: this may take long.
PeerAddress resolved(const MemberAddress& member, int rank) {
  PeerAddress peer;
  peer.host = member.host;
  peer.port = member.port;
  Resolved found = resolve_host(member.host);
  if (found.addresses.empty()) {
    throw GroupBroken(rank, "the host of rank " + std::to_string(rank) + ", " + member.host +
                                ", has no address: " + found.error);
  }
  peer.addresses = std::move(found.addresses);
  return peer;
}

// The connections to one member while they are made.
struct Making {
  std::optional<Stream::Released> data, news;
  std::string last_failure;

  std::optional<Stream::Released>& of(LinkKind kind) {
    return kind == LinkKind::data ? data : news;
  }
  bool complete() const { return data && news; }
  bool has_ended() const {
    return (data && has_hung_up(data->socket.get())) || (news && has_hung_up(news->socket.get()));
  }
};

// One call of form_links(), on its thread.
class LinkFormer {
 public:
  LinkFormer(LinkListener listener, const LinkOptions& options, int rank,
             std::vector<MemberAddress> members)
      : options_(options),
        rank_(rank),
        token_(listener.address().token),
        members_(std::move(members)),
        accepts_(
            io_, [this](tcp::socket socket) { admit(std::move(socket)); },
            [this](const std::string& error) { last_stranger_ = "cannot accept: " + error; }),
        making_(members_.size()) {
    const auto protocol = listener.is_ipv6() ? tcp::v6() : tcp::v4();
    accepts_.acceptor().assign(protocol, listener.take().release());
  }

  std::vector<std::optional<MemberLinks>> run(Duration limit, const std::stop_token& stop);

 private:
  // A connection that is closed when all ends.
  struct Open {
    explicit Open(asio::io_context& io) : stream(io) {}
    explicit Open(tcp::socket socket) : stream(std::move(socket)) {}
    Stream stream;
    ConnectionFacts facts;
  };
  using OpenList = std::list<Open>;

  int size() const { return static_cast<int>(members_.size()); }
  Making& making(int rank) { return making_[static_cast<std::size_t>(rank)]; }
  const MemberAddress& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  std::string name_of(int rank) const {
    return options_.names.empty() ? "" : options_.names[static_cast<std::size_t>(rank)];
  }
  std::string words_for(int rank) const {
    return "rank " + std::to_string(rank) + " at " + member(rank).host + " port " +
           std::to_string(member(rank).port);
  }

  void spawn(asio::awaitable<void> work);
  asio::awaitable<void> call(int rank, LinkKind kind, PeerAddress peer);
  asio::awaitable<std::optional<Failure>> call_once(Stream& stream, int rank, LinkKind kind,
                                                    const PeerAddress& peer);
  void admit(tcp::socket socket);
  asio::awaitable<void> answer(OpenList::iterator caller);
  std::string fault_of(const LinkGreeting& greeting, const Stream& stream) const;
  void place(int rank, LinkKind kind, Stream& stream);
  void fail(int lost, const std::string& what);
  void end();
  void look_for_ends();
  std::vector<int> missing() const;
  std::string words_for_missing() const;

  const LinkOptions& options_;
  const int rank_;
  const Key token_;
  const std::vector<MemberAddress> members_;
  asio::io_context io_{1};
  net::AcceptLoop<tcp> accepts_;
  OpenList callers_;                       // that are not admitted yet
  std::list<Stream*> calls_;               // under way
  std::list<asio::steady_timer*> pauses_;  // between calls
  asio::steady_timer looks_{io_};
  std::vector<Making> making_;
  std::string last_stranger_;
  bool ended_ = false;
  std::optional<GroupBroken> failure_;
  std::exception_ptr defect_;  // such as want of memory
};

// Coroutines own nothing that outlives run().
void LinkFormer::spawn(asio::awaitable<void> work) {
  asio::co_spawn(io_, std::move(work), [this](std::exception_ptr failure) {
    if (!failure) return;
    defect_ = failure;
    end();
  });
}

void LinkFormer::fail(int lost, const std::string& what) {
  if (!failure_ && !ended_) failure_.emplace(lost, what);
  end();
}

void LinkFormer::end() {
  ended_ = true;
  accepts_.stop();
  for (Open& caller : callers_) caller.stream.close();
  for (Stream* call : calls_) call->close();
  for (asio::steady_timer* pause : pauses_) pause->cancel();
  looks_.cancel();
}

// A member that was connected and has gone: the others need not wait for the rest.
void LinkFormer::look_for_ends() {
  for (int rank = 0; rank < size() && !ended_; ++rank) {
    if (making(rank).has_ended()) fail(rank, words_for(rank) + " has gone meanwhile");
  }
  if (ended_) return;
  looks_.expires_after(between_looks);
  looks_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) look_for_ends();
  });
}

std::vector<std::optional<MemberLinks>> LinkFormer::run(Duration limit,
                                                        const std::stop_token& stop) {
  std::vector<PeerAddress> lower;
  for (int rank = 0; rank < rank_; ++rank) {
    lower.push_back(resolved(member(rank), rank));
    lower.back().name = name_of(rank);
  }
  const TimePoint until = std::chrono::steady_clock::now() + limit;
  // Its destruction, once all is done, lets io_.run() return.
  asio::steady_timer deadline(io_, until);
  pauses_.push_back(&deadline);
  deadline.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) fail(missing().front(), words_for_missing());
  });
  const std::stop_callback stopped(stop, [this] {
    asio::post(io_, [this] { fail(-1, "the group was given up while it was formed"); });
  });
  if (rank_ + 1 < size()) {
    accepts_.run();
  } else {
    accepts_.stop();
  }
  for (int rank = 0; rank < rank_; ++rank) {
    for (const LinkKind kind : {LinkKind::data, LinkKind::news})
      spawn(call(rank, kind, lower[static_cast<std::size_t>(rank)]));
  }
  look_for_ends();
  if (missing().empty()) end();
  io_.run();
  if (defect_) std::rethrow_exception(defect_);
  if (failure_) throw *failure_;
  std::vector<std::optional<MemberLinks>> links(members_.size());
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    Making& made = making(rank);
    links[static_cast<std::size_t>(rank)].emplace(LinkSocket(*std::exchange(made.data, {})),
                                                  LinkSocket(*std::exchange(made.news, {})));
  }
  return links;
}

std::vector<int> LinkFormer::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != rank_ && !making_[static_cast<std::size_t>(rank)].complete()) ranks.push_back(rank);
  }
  return ranks;
}

std::string LinkFormer::words_for_missing() const {
  constexpr std::size_t most = 8;
  std::string words = "not all members of the group were connected in time; missing: ";
  const std::vector<int> ranks = missing();
  for (std::size_t i = 0; i < ranks.size() && i < most; ++i) {
    const std::string& failure = making_[static_cast<std::size_t>(ranks[i])].last_failure;
    words += (i == 0 ? "" : ", ") + words_for(ranks[i]);
    if (!failure.empty()) words += " (" + failure + ")";
  }
  if (ranks.size() > most) words += " and " + std::to_string(ranks.size() - most) + " more";
  if (!last_stranger_.empty()) words += "; last refused: " + last_stranger_;
  return words;
}

void LinkFormer::place(int rank, LinkKind kind, Stream& stream) {
  making(rank).of(kind) = stream.release();
  if (missing().empty()) end();
}

asio::awaitable<std::optional<Failure>> LinkFormer::call_once(Stream& stream, int rank,
                                                              LinkKind kind,
                                                              const PeerAddress& peer) {
  auto failure = co_await net::connect(stream.socket(), peer);
  if (failure) co_return failure;
  net::tune(stream.socket());
  failure = co_await net::secure(stream, peer, options_.security.get());
  if (failure) co_return failure;
  LinkGreeting greeting;
  greeting.kind = kind;
  greeting.caller = static_cast<std::uint16_t>(rank_);
  greeting.called = static_cast<std::uint16_t>(rank);
  greeting.size = static_cast<std::uint16_t>(size());
  greeting.group = options_.group;
  greeting.token = member(rank).token;
  const auto encoded = greeting.encode();
  const std::span<const std::byte> words(encoded);
  failure = co_await stream.write_all(words);
  if (failure) co_return failure;
  std::array<std::byte, LinkReply::bytes> answered{};
  const std::span<std::byte> into(answered);
  const auto count = co_await stream.read_some(into, answered.size());
  if (!count) co_return count.error();
  const auto reply = LinkReply::decode(answered);
  if (!reply || !(reply->token == token_))
    failure.emplace(Failure::Kind::rejected, "is no member of this group");
  co_return failure;
}

asio::awaitable<void> LinkFormer::call(int rank, LinkKind kind, PeerAddress peer) {
  while (!ended_) {
    Stream stream(io_);
    calls_.push_back(&stream);
    const OnExit called([this, &stream] { std::erase(calls_, &stream); });
    const auto failure = co_await call_once(stream, rank, kind, peer);
    if (ended_) co_return;
    if (!failure) {
      place(rank, kind, stream);
      co_return;
    }
    making(rank).last_failure = failure->detail;
    const bool is_final = failure->nobody_listens || failure->kind == Failure::Kind::security ||
                          failure->kind == Failure::Kind::rejected;
    if (is_final) {
      fail(rank, words_for(rank) + ": " + failure->detail);
      co_return;
    }
    asio::steady_timer pause(io_, pause_between_calls);
    pauses_.push_back(&pause);
    const OnExit paused([this, &pause] { std::erase(pauses_, &pause); });
    co_await pause.async_wait(net::as_result);
  }
}

void LinkFormer::admit(tcp::socket socket) {
  boost::system::error_code gone;
  const auto remote = socket.remote_endpoint(gone);
  if (gone || ended_) return;
  const std::string network = net::network_of(net::text_of(remote.address()));
  ConnectionLimits limits;
  limits.handshakes = limits.in_all = limits.per_address =
      2 * static_cast<std::uint32_t>(members_.size()) + most_strangers;
  std::vector<ConnectionFacts> present;
  for (const Open& caller : callers_) present.push_back(caller.facts);
  const auto verdict = examine_connection(present, network, limits);
  if (!verdict.admitted) return;
  if (verdict.closes) {
    Open& oldest = *std::next(callers_.begin(), static_cast<std::ptrdiff_t>(*verdict.closes));
    oldest.facts.phase = ConnectionFacts::Phase::closing;
    oldest.stream.close();
  }
  net::tune(socket);
  callers_.emplace_back(std::move(socket));
  callers_.back().facts.address = network;
  callers_.back().facts.since = std::chrono::steady_clock::now();
  spawn(answer(std::prev(callers_.end())));
}

asio::awaitable<void> LinkFormer::answer(OpenList::iterator caller) {
  const OnExit over([this, caller] { callers_.erase(caller); });
  Stream& stream = caller->stream;
  stream.expect_bulk();
  const TimePoint until = std::chrono::steady_clock::now() + options_.greeting_time;
  const net::Deadline deadline(stream.get_executor(), until, [&stream] { stream.close(); });
  const auto failure = co_await net::secure_inbound(stream, options_.security.get());
  if (failure) {
    last_stranger_ = caller->facts.address + " " + failure->detail;
    co_await stream.finish();
    co_return;
  }
  std::array<std::byte, LinkGreeting::bytes> said{};
  const std::span<std::byte> into(said);
  const auto count = co_await stream.read_some(into, said.size());
  if (!count) co_return;
  const auto greeting = LinkGreeting::decode(said);
  const std::string fault = greeting ? fault_of(*greeting, stream) : "is no member of a group";
  if (!fault.empty()) {
    last_stranger_ = caller->facts.address + " " + fault;
    co_return;
  }
  const LinkReply reply{member(greeting->caller).token};
  const auto encoded = reply.encode();
  const std::span<const std::byte> words(encoded);
  const auto broken = co_await stream.write_all(words);
  if (!broken && stream.is_open()) place(greeting->caller, greeting->kind, stream);
}

// In words that follow the caller's address; empty: it is a member.
std::string LinkFormer::fault_of(const LinkGreeting& greeting, const Stream& stream) const {
  if (!(greeting.token == token_)) return "does not know the token of this member";
  if (greeting.group != options_.group) return "belongs to another group";
  if (greeting.called != rank_ || greeting.size != size() || greeting.caller <= rank_ ||
      greeting.caller >= size())
    return "has another view of the group";
  const std::string name = name_of(greeting.caller);
  const auto names = stream.certified_names();
  if (name.empty() || net::is_for(names, name)) return "";
  return "calls as '" + name + "', with a certificate for " + net::words_for(*names);
}

}  // namespace

std::vector<std::optional<MemberLinks>> form_links(LinkListener listener,
                                                   const LinkOptions& options, int rank,
                                                   const std::vector<std::string>& texts,
                                                   Duration limit, const std::stop_token& stop) {
  const int size = static_cast<int>(texts.size());
  DPWA_INVARIANT(rank >= 0 && rank < size && size <= most_link_members, "the rank is of the group",
                 rank, size);
  DPWA_INVARIANT(options.names.empty() || options.names.size() == texts.size(),
                 "a name for every member", options.names.size(), size);
  std::vector<MemberAddress> members;
  for (int each = 0; each < size; ++each) {
    const auto member = MemberAddress::parse(texts[static_cast<std::size_t>(each)]);
    if (!member)
      throw GroupBroken(each, "rank " + std::to_string(each) + " does not say where it listens");
    members.push_back(*member);
  }
  return LinkFormer(std::move(listener), options, rank, std::move(members)).run(limit, stop);
}

}  // namespace dpwa::collectives
