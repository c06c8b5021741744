#include <doctest/doctest.h>
#include <openssl/bio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "dpwa/net/tls_session.h"
#include "dpwa/security/tls_context.h"
#include "test/dpwa/net/conversation.h"
#include "test/dpwa/net/fake_peer.h"
#include "test/dpwa/net/secure_nodes.h"
#include "test/support/eventually.h"

// Members that speak TLS as OpenSSL lets them, and never stop.

namespace dpwa {
namespace {

namespace asio = boost::asio;
using net::TlsSession;
using test::ClusterKey;
using test::FakePeer;
using test::RawFrame;
using test::RawSocket;
using test::secure_caller;
using test::secure_node;

// One end of TLS over a raw socket. What it seals stays here until send().
class RawTls {
 public:
  RawTls(RawSocket& socket, const ClusterKey& key, bool calls)
      : socket_(socket),
        context_(key.open()->context()),
        ssl_(context_->begin(calls, calls, &offered_)) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  }

  bool shake_hands() {
    return until_done([this] { return SSL_do_handshake(ssl_.get()); });
  }
  std::vector<std::byte> read(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t have = 0; have < count;) {
      std::size_t got = 0;
      const bool done = until_done(
          [&] { return SSL_read_ex(ssl_.get(), bytes.data() + have, count - have, &got); });
      if (!done) return {};
      have += got;
    }
    return bytes;
  }
  std::optional<RawFrame> read_frame() {
    const auto bytes = read(wire::header_bytes);
    if (bytes.empty()) return std::nullopt;
    const auto header = wire::decode_header(std::span(bytes).first<wire::header_bytes>(), 1 << 20);
    if (!header) return std::nullopt;
    return RawFrame{*header, read(header->body_bytes)};
  }
  bool seal(std::span<const std::byte> bytes) {
    std::size_t count = 0;
    return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) == 1;
  }
  bool seal_key_update() {
    return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_do_handshake(ssl_.get()) == 1;
  }
  bool seal_ticket() {
    SSL_clear_options(ssl_.get(), SSL_OP_NO_TICKET);
    return SSL_new_session_ticket(ssl_.get()) == 1 && SSL_do_handshake(ssl_.get()) == 1;
  }
  bool seal_close() { return SSL_shutdown(ssl_.get()) == 0; }  // it still reads
  bool send() {
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &bytes);
    const bool sent =
        socket_.send(std::string_view(bytes, static_cast<std::size_t>(count > 0 ? count : 0)));
    BIO_reset(SSL_get_wbio(ssl_.get()));
    return sent;
  }

 private:
  bool until_done(const std::function<int()>& step) {
    while (true) {
      const int result = step();
      if (!send()) return false;
      if (result == 1) return true;
      if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) return false;
      std::array<std::byte, 4096> bytes;
      const auto got = ::recv(socket_.descriptor(), bytes.data(), bytes.size(), 0);
      if (got <= 0) return false;
      BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(got));
    }
  }

  RawSocket& socket_;
  OfferedKey offered_;
  const std::shared_ptr<const TlsContext> context_;
  SslPointer ssl_;
};

constexpr unsigned allowed = net::TlsRecords::max_key_updates(0);

// As w1: goes through the handshakes and reads the PULL.
bool is_asked(RawTls& tls) {
  if (!tls.shake_hands()) return false;
  const auto hello = tls.read_frame();
  if (!hello) return false;
  wire::Welcome welcome;
  welcome.node = "w1";
  welcome.incarnation = 11;
  welcome.capabilities = test::sound_hello().capabilities;
  return tls.seal(wire::encode(welcome, hello->header.request_id)) && tls.send() &&
         tls.read_frame().has_value();
}

// As w2: goes through the handshakes.
bool is_welcome(RawTls& tls) {
  if (!tls.shake_hands() || !tls.seal(wire::encode(test::sound_hello(), 1))) return false;
  const auto answer = tls.read_frame();
  return answer && answer->header.type == wire::MessageType::welcome;
}

}  // namespace

TEST_CASE("a peer that answers a pull with messages of TLS without end is refused at once") {
  const ClusterKey key;
  bool (RawTls::*flood)() = nullptr;
  unsigned count = 0;
  SUBCASE("session tickets: already the first") {
    flood = &RawTls::seal_ticket;
    count = 1;
  }
  SUBCASE("many session tickets") {
    flood = &RawTls::seal_ticket;
    count = 5000;
  }
  SUBCASE("changes of its keys") {
    flood = &RawTls::seal_key_update;
    count = allowed + 1;
  }
  std::atomic<bool> sealed{true};
  std::atomic<bool> cut{false};
  const FakePeer peer([&](RawSocket& socket) {
    RawTls tls(socket, key, /*calls=*/false);
    if (!is_asked(tls)) return;
    for (unsigned i = 0; i < count; ++i) sealed = (tls.*flood)() && sealed;
    tls.send();
    cut = socket.ended_by_other_side();
  });
  const auto caller = secure_caller(peer.port(), key.open());
  const Arrival arrival = caller->pull();
  CHECK(sealed);
  CHECK(arrival.outcome == Outcome::rejected);
  CHECK(caller->local().traffic.protocol_errors == 1);
  CHECK(test::eventually([&] { return cut.load(); }));
}

TEST_CASE("a caller that keeps changing its TLS keys is cut off, and the node serves the others") {
  const ClusterKey key;
  const auto node = secure_node(key.open());
  RawSocket socket(node->port());
  RawTls tls(socket, key, /*calls=*/true);
  REQUIRE(is_welcome(tls));
  for (unsigned i = 0; i < allowed; ++i) REQUIRE(tls.seal_key_update());
  const auto pull = [&](std::uint32_t id) { return tls.seal(wire::encode(wire::Pull{}, id)); };
  REQUIRE((pull(2) && tls.send()));
  REQUIRE(tls.read_frame());  // few of them are allowed
  REQUIRE(tls.seal_key_update());
  REQUIRE((pull(3) && tls.send()));
  CHECK(socket.ended_by_other_side());
  CHECK(test::eventually([&] { return node->local().traffic.protocol_errors == 1; }));
  CHECK(node->local().traffic.snapshots_served == 1);
  CHECK(secure_caller(node->port(), key.open())->pull().outcome == Outcome::mixed);
}

TEST_CASE("bytes that came before the end of a TLS connection are delivered before the end") {
  bool says_so = false;
  SUBCASE("with a word") {
    says_so = true;
  }
  SUBCASE("without") {}
  const ClusterKey key;
  asio::io_context io(1);
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  std::optional<RawSocket> sender(acceptor.local_endpoint().port());
  auto socket = acceptor.accept();
  std::optional<RawTls> tls(std::in_place, *sender, key, /*calls=*/true);
  TlsSession session(socket, key.open()->context(), /*calls=*/false, /*reads_bulk=*/false);
  bool both = false;
  std::thread other([&] { both = tls->shake_hands(); });
  bool refused = true;
  asio::co_spawn(io, session.shake_hands(),
                 [&](std::exception_ptr, auto failure) { refused = failure.has_value(); });
  io.run();
  other.join();
  REQUIRE((both && !refused));

  const std::vector<std::byte> reply(1000, std::byte{7});
  REQUIRE(tls->seal(reply));
  if (says_so) REQUIRE(tls->seal_close());
  REQUIRE(tls->send());
  tls.reset();
  sender.reset();                       // everything has left, and the end with it
  std::vector<std::byte> target(4000);  // for as much as comes, at least the reply
  std::vector<std::optional<net::IoResult<std::size_t>>> reads(2);
  for (auto& read : reads) {
    asio::co_spawn(io, session.read_some(target, reply.size()),
                   [&](std::exception_ptr, const auto& got) { read = got; });
    io.restart();
    io.run();
  }
  REQUIRE((reads[0] && reads[0]->has_value()));
  CHECK(**reads[0] == reply.size());
  CHECK(std::equal(reply.begin(), reply.end(), target.begin()));
  REQUIRE((reads[1] && reads[1]->has_error()));
  CHECK(reads[1]->error().detail == "the connection was closed");
}

TEST_CASE("the other work of the thread has its turn however many records have arrived") {
  constexpr std::size_t records = 4000;  // of one byte each
  const ClusterKey key;
  asio::io_context io(1);
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  RawSocket sender(acceptor.local_endpoint().port());
  auto socket = acceptor.accept();
  RawTls tls(sender, key, /*calls=*/true);
  TlsSession session(socket, key.open()->context(), /*calls=*/false, /*reads_bulk=*/false);
  bool both = false;
  std::thread other([&] { both = tls.shake_hands(); });
  bool refused = true;
  const auto keep = [](auto& target) {
    return [&](std::exception_ptr, auto got) { target = !!got; };
  };
  asio::co_spawn(io, session.shake_hands(), keep(refused));
  io.run();
  other.join();
  REQUIRE((both && !refused));

  const std::byte one{7};
  for (std::size_t i = 0; i < records; ++i) REQUIRE(tls.seal({&one, 1}));
  REQUIRE(tls.send());
  constexpr int least = records * 23;  // header, byte, type and tag of each
  REQUIRE(test::eventually([&] {
    int arrived = 0;
    return ::ioctl(socket.native_handle(), FIONREAD, &arrived) == 0 && arrived >= least;
  }));
  std::vector<std::byte> target(records);
  bool done = false;
  std::size_t turns = 0;
  asio::co_spawn(io, session.read_some(target, records),
                 [&](std::exception_ptr, const auto& got) { done = got && *got == records; });
  const std::function<void()> turn = [&] {
    if (done) return;
    ++turns;
    asio::post(io, turn);
  };
  turn();
  io.restart();
  io.run();
  CHECK(done);
  CHECK(target.back() == one);
  CHECK(turns >= records / TlsSession::max_records_in_a_row);
}

}  // namespace dpwa
