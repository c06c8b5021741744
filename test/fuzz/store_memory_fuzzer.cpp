// Memory that a server of the store and a worker of its host share: whatever the other end hands
// over, says of it and writes to it, each side reads only what it has mapped, what is lent does not
// change, and no value becomes other than finite.
//
// The first byte: bit 0 the side under test (0 server, 1 worker), bit 1 updates at each push. Then
// records: u8 operation, of the enum below; its arguments, each as Input has them.

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/coroutine.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/aligned_buffer.h"
#include "test/fuzz/memory_client.h"
#include "test/fuzz/memory_host.h"
#include "test/fuzz/require.h"

using namespace dpwa;
using test::Input;
using test::MemoryGuest;
using test::MemoryHost;

namespace {

namespace asio = boost::asio;

enum class Operation : std::uint8_t {
  hello,       // name, incarnation
  share,       // number, bytes that it says to have, kind of the descriptor
  shared,      // number
  frame,       // over the Unix socket: length, bytes as they are
  write,       // file, number of the value, generation
  push,        // key, memory, offset, bytes, mark, step, number of the weight
  pull,        // key, clock, known version
  read,        // number
  message,     // over TCP: type, length, content as kv_body() has it
  other_push,  // key: of the worker that shares nothing
  reconnect,   // incarnation
  count
};

Operation next_operation(Input& input) {
  return static_cast<Operation>(input.byte() % static_cast<unsigned>(Operation::count));
}

// What the Unix socket carries.
void at_socket(Operation operation, Input& input, MemoryGuest& client) {
  switch (operation) {
    case Operation::hello: {
      const unsigned name = input.byte();
      return client.hello(name, input.byte());
    }
    case Operation::share: {
      const auto number = static_cast<std::uint32_t>(input.number());
      const std::uint64_t bytes = input.number();
      return client.share(number, bytes, input.byte());
    }
    case Operation::shared:
      return client.send(wire::encode(wire::Shared{static_cast<std::uint32_t>(input.number())}, 0));
    case Operation::frame:
      return client.send(input.bytes(input.byte()));
    case Operation::write: {
      const unsigned file = input.byte();
      const unsigned value = input.byte();
      return client.write(file, value, input.number());
    }
    default:
      return;
  }
}

MemoryPlace place_in(Input& input) {
  MemoryPlace place;
  place.memory = static_cast<std::uint32_t>(input.number());
  place.offset = input.number();
  place.bytes = input.number();
  place.mark = input.number();
  return place;
}

void at_server(Input input, bool at_each_push) {
  MemoryHost host(at_each_push);
  auto client = std::make_unique<MemoryGuest>(host.connect());
  while (!input.over()) {
    const Operation operation = next_operation(input);
    switch (operation) {
      case Operation::push: {
        kvstore::Push push;
        const unsigned key = input.byte();
        push.place = place_in(input);
        push.step = input.number();
        const unsigned terms = input.byte();
        host.ask(MemoryHost::with_terms(std::move(push), key, terms));
        break;
      }
      case Operation::pull: {
        const unsigned key = input.byte();
        const std::uint64_t clock = input.number();
        host.ask(kvstore::Pull{0, MemoryHost::slice(key), clock, input.number()});
        break;
      }
      case Operation::read:
        host.read(input.number());
        break;
      case Operation::message: {
        const unsigned type = input.byte();
        host.ask_anything(type, input.bytes(input.byte()));
        break;
      }
      case Operation::other_push:
        host.other_push(input.byte());
        break;
      case Operation::reconnect:
        host.reconnect(input.byte());
        client = std::make_unique<MemoryGuest>(host.connect());
        break;
      default:
        at_socket(operation, input, *client);
        break;
    }
    host.run();
    client->drain();
  }
}

// As ServerLink uses it.
void at_worker(Input input) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  MemoryGuest client{FileDescriptor(ends[0])};
  asio::io_context io(1);
  asio::local::stream_protocol::socket socket(io, asio::local::stream_protocol(), ends[1]);
  const auto exchange = std::make_shared<same_host::MemoryExchange>(std::move(socket));
  const auto own = MemoryFile::create(4096);
  if (own) exchange->share(0, *own);
  asio::co_spawn(io, exchange->run(), [exchange](std::exception_ptr failure, const auto&) {
    net::rethrow(std::move(failure));
  });
  while (!input.over()) {
    const Operation operation = next_operation(input);
    if (operation == Operation::push) {  // here an answer that names memory
      const MemoryPlace place = place_in(input);
      const auto lent = exchange->borrow(place);
      DPWA_FUZZ_REQUIRE(!lent || lent->bytes.size() == place.bytes);
      if (lent) (void)copy_of(lent->bytes);
      (void)(lent && lent->intact());
    } else {
      at_socket(operation, input, client);
    }
    io.poll();
    client.drain();
  }
  exchange->close();
  io.poll();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Input input(std::as_bytes(std::span(data + 1, size - 1)));
  if ((data[0] & 1) == 0) {
    at_server(input, (data[0] & 2) != 0);
  } else {
    at_worker(input);
  }
  return 0;
}
