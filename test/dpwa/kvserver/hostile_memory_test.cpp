#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/kvserver/limits.h"
#include "dpwa/kvserver/store_server.h"
#include "dpwa/net/same_host/memory_exchange.h"
#include "dpwa/net/same_host/offer.h"
#include "dpwa/snapshot/memory_file.h"
#include "test/dpwa/kvserver/raw_store.h"
#include "test/dpwa/kvserver/store_worker.h"
#include "test/support/eventually.h"

// What a server of the store makes of a process of its own host and user that breaks the rules of
// the memory which they share: the others go on.

namespace dpwa {
namespace {

using test::RawSocket;
using wire::MessageType;
using Frame = std::vector<std::byte>;

constexpr std::uint64_t file_bytes = 256 << 10;
const kvstore::Key key(1);

// Worker w1, which trains alone and uses no memory.
struct Training {
  explicit Training(std::size_t elements = 2) : weights(elements, 0) {
    server.start();
    REQUIRE(worker.joined());
    REQUIRE(worker.init(key, weights));
  }
  void goes_on() {
    CHECK(worker.push(key, step, std::vector<float>(weights.size(), 1), 1));
    ++step;
    for (float& each : weights) each -= 1;
    CHECK(worker.pull(key, step) == weights);
  }

  static Config config_of_one() {
    Config config = test::store_config(1);
    config.kvstore.lost_after = std::chrono::seconds(5);  // w1 is not to be left out
    return config;
  }
  const Config config = config_of_one();
  kvserver::StoreServer server{config, "s1"};
  test::StoreWorker worker{config, "w1"};
  std::vector<float> weights;
  std::uint64_t step = 0;
};

// Worker w2: its connection, and the one for memory.
struct SharedMemoryClient {
  explicit SharedMemoryClient(const Training& training)
      : tcp(training.server.port()), door(connect()) {}
  RawSocket connect() {
    const auto welcome = test::introduce_as(tcp, "w2");
    REQUIRE(welcome);
    const auto offer = same_host::parse_offer(welcome->same_host);
    REQUIRE(offer);
    return test::connect_unix(offer->socket);
  }
  void say_hello() { CHECK(door.send(wire::encode(test::store_hello("w2"), 1))); }
  bool share(std::uint32_t number, std::uint64_t bytes, int descriptor) {
    const auto frame = wire::encode(wire::Share{number, bytes}, 0);
    const int descriptors[] = {descriptor};
    return test::send_descriptors(door, frame, descriptors);
  }
  // Of the file of this number.
  bool is_shared(std::uint32_t number) {
    while (const auto frame = door.read_frame()) {
      if (frame->header.type != MessageType::shared) continue;
      const auto shared = wire::decode_shared(frame->body);
      if (shared && shared->number == number) return true;
    }
    return false;
  }

  RawSocket tcp;
  RawSocket door;
};

// A memory file of so many bytes, with or without the seal against shrinking.
FileDescriptor memory_file(std::uint64_t bytes, bool sealed = true, unsigned flags = 0) {
  FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  const auto size = static_cast<off_t>(MemoryFileLayout::file_bytes(bytes));
  REQUIRE(::ftruncate(file.get(), size) == 0);
  if (sealed) REQUIRE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  return file;
}

kvstore::Push push_of(const MemoryPlace& place) {
  kvstore::Push push;
  push.slice = {key, 0};
  push.place = place;
  return push;
}

}  // namespace

TEST_CASE("a SHARE that is not right ends the connection for memory, and the workers go on") {
  Training training;
  SharedMemoryClient client(training);
  const FileDescriptor file = memory_file(file_bytes);
  SUBCASE("before HELLO") {
    CHECK(client.share(0, file_bytes, file.get()));
  }
  SUBCASE("of a worker that is not in the file") {
    CHECK(client.door.send(wire::encode(test::store_hello("w7"), 1)));
  }
  SUBCASE("without a descriptor") {
    client.say_hello();
    CHECK(client.door.send(wire::encode(wire::Share{0, file_bytes}, 0)));
  }
  SUBCASE("of another size") {
    client.say_hello();
    CHECK(client.share(0, file_bytes + 4096, file.get()));
  }
  SUBCASE("of more bytes than there are") {
    client.say_hello();
    CHECK(client.share(0, std::numeric_limits<std::uint64_t>::max(), file.get()));
  }
  SUBCASE("of a file that could shrink") {
    client.say_hello();
    CHECK(client.share(0, file_bytes, memory_file(file_bytes, false).get()));
  }
  SUBCASE("of a descriptor that is no memory file") {
    client.say_hello();
    CHECK(client.share(0, file_bytes, client.tcp.descriptor()));
  }
  SUBCASE("twice with one number") {
    client.say_hello();
    CHECK(client.share(0, file_bytes, file.get()));
    CHECK(client.is_shared(0));
    CHECK(client.share(0, file_bytes, file.get()));
  }
  SUBCASE("with a wrong checksum") {
    client.say_hello();
    Frame frame = wire::encode(wire::Share{0, file_bytes}, 0);
    frame.back() ^= std::byte{1};
    const int descriptors[] = {file.get()};
    CHECK(test::send_descriptors(client.door, frame, descriptors));
  }
  SUBCASE("SHARED of memory that was not shared") {
    client.say_hello();
    CHECK(client.door.send(wire::encode(wire::Shared{5}, 0)));
  }
  SUBCASE("another message") {
    client.say_hello();
    CHECK(client.door.send(test::bytes_of(push_of({0, 0, 8, 0}))));
  }
  CHECK(client.door.ended_by_other_side());
  training.goes_on();
}

TEST_CASE("memory of a pool of huge pages, which can run out under its reader, is not mapped") {
  constexpr std::uint64_t huge_page = 2 << 20;
  constexpr std::uint64_t bytes = huge_page - 4096;  // with the page of the generation: one
  FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!file.valid() || ::ftruncate(file.get(), huge_page) != 0) {
    MESSAGE("this system has no huge pages of 2 MiB");
    return;
  }
  REQUIRE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  const auto opened = MemoryFile::open(std::move(file), bytes, MemoryFile::Access::read);
  REQUIRE_FALSE(opened);
  CHECK(opened.error() == "sent memory of a pool of huge pages");
}

TEST_CASE("a message that names no memory of its worker ends its connection") {
  Training training;
  SharedMemoryClient client(training);
  client.say_hello();
  const FileDescriptor file = memory_file(file_bytes);
  REQUIRE(client.share(3, file_bytes, file.get()));
  REQUIRE(client.is_shared(3));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  Frame sent;
  SUBCASE("of another number") {
    sent = test::bytes_of(push_of({4, 0, 8, 0}));
  }
  SUBCASE("behind its end") {
    sent = test::bytes_of(push_of({3, file_bytes, 8, 0}));
  }
  SUBCASE("over its end") {
    sent = test::bytes_of(push_of({3, file_bytes - 4, 8, 0}));
  }
  SUBCASE("whose end overflows") {
    sent = test::bytes_of(push_of({3, 8, most - 4, 0}));
  }
  SUBCASE("whose place overflows") {
    sent = test::bytes_of(push_of({3, most, 8, 0}));
  }
  SUBCASE("of no bytes") {
    sent = test::bytes_of(push_of({3, 0, 0, 0}));
  }
  SUBCASE("as a server would") {
    kvstore::Answer answer;
    answer.place = {3, 0, 8, 1};
    sent = test::bytes_of(answer);
  }
  SUBCASE("SHARE over TCP") {
    sent = wire::encode(wire::Share{4, file_bytes}, 0);
  }
  SUBCASE("SHARED over TCP") {
    sent = wire::encode(wire::Shared{3}, 0);
  }
  SUBCASE("KV_READ with a wrong checksum") {
    sent = wire::encode_kv_read(1);
    sent.back() ^= std::byte{1};
  }
  CHECK(client.tcp.send(sent));
  CHECK(client.tcp.ended_by_other_side());
  training.goes_on();
}

TEST_CASE("KV_READ of answers that were never given does no harm") {
  Training training;
  SharedMemoryClient client(training);
  for (const std::uint64_t number : {std::uint64_t{0}, ~std::uint64_t{0}})
    CHECK(client.tcp.send(wire::encode_kv_read(number)));
  CHECK(client.tcp.send(test::bytes_of(kvstore::Pull{1, {key, 0}, 0, 0})));
  const auto answer = test::read_message<kvstore::Answer>(client.tcp);
  REQUIRE(answer);
  CHECK(answer->kind == kvstore::AnswerKind::other_epoch);
  training.goes_on();
}

namespace {

// A client that takes part.
struct Participant : SharedMemoryClient {
  explicit Participant(Training& training) : SharedMemoryClient(training), owner(training) {
    say_hello();
    REQUIRE(test::eventually([&] {
      beat(0);
      return owner.worker.epoch().worker("w2") != nullptr;
    }));
    epoch = owner.worker.epoch().number;
    step = owner.worker.epoch().worker("w2")->first_step;
  }
  void beat(std::uint64_t clock) {
    const std::uint64_t number = owner.worker.epoch().number;
    CHECK(tcp.send(test::bytes_of(kvstore::Beat{number, clock, true, true, 0, 0, {}})));
  }

  Training& owner;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
};

}  // namespace

TEST_CASE("memory that changes, and loses its pages, while it is read does not spoil a sum") {
  constexpr std::size_t elements = 60'000;
  constexpr std::uint64_t bytes = elements * sizeof(float);
  Training training(elements);
  training.goes_on();
  Participant member(training);
  const FileDescriptor file = memory_file(bytes);
  REQUIRE(member.share(0, bytes, file.get()));
  REQUIRE(member.is_shared(0));
  const auto size = MemoryFileLayout::file_bytes(bytes);
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  std::atomic<bool> over = false;
  std::thread scribbler([&] {
    auto* values = static_cast<float*>(mapped);
    for (unsigned round = 0; !over; ++round) {
      const float value = round % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
      std::fill_n(values, elements, value);
      ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  static_cast<off_t>(bytes) / 2);
    }
  });
  // Both count from the step that w2 begins with.
  std::uint64_t step = training.step;
  for (; step < member.step + 30; ++step) {
    if (step >= member.step) {
      kvstore::Push push = push_of({0, 0, bytes, 0});
      push.epoch = member.epoch;
      push.step = step;
      CHECK(member.tcp.send(test::bytes_of(push)));
    }
    member.beat(step + 1);
    REQUIRE(training.worker.push(key, step, std::vector<float>(elements, 1), 1));
  }
  over = true;
  scribbler.join();
  ::munmap(mapped, size);
  const auto values = training.worker.pull(key, step);
  REQUIRE(values.size() == elements);
  CHECK(std::ranges::all_of(values, [](float each) { return std::isfinite(each); }));
}

TEST_CASE("a push of memory whose length is not that of the slice is refused in words") {
  Training training;
  Participant member(training);
  const FileDescriptor file = memory_file(file_bytes);
  REQUIRE(member.share(0, file_bytes, file.get()));
  REQUIRE(member.is_shared(0));
  kvstore::Push push = push_of({0, 3, 12, 0});
  push.epoch = member.epoch;
  push.step = member.step;
  CHECK(member.tcp.send(test::bytes_of(push)));
  const auto answer = test::read_message<kvstore::Answer>(member.tcp);
  REQUIRE(answer);
  CHECK(answer->kind == kvstore::AnswerKind::wrong_spec);
  CHECK(answer->problem.find("has 8 bytes, not 12") != std::string::npos);
}

TEST_CASE("a worker that never says what it has read gets values over TCP beyond a bound") {
  constexpr std::size_t elements = 900'000;
  constexpr std::size_t bytes = elements * sizeof(float);
  Training training(elements);
  Participant member(training);
  // It takes everything that the server shares.
  std::thread taker([&] {
    while (const auto frame = member.door.read_frame()) {
      const auto share = wire::decode_share(frame->body);
      if (frame->header.type != MessageType::share || !share) continue;
      if (!member.door.send(wire::encode(wire::Shared{share->number}, 0))) return;
    }
  });
  std::size_t mapped = 0;
  bool sent_after = false;
  const std::size_t most = kvserver::most_lent_to_worker / bytes;
  for (std::size_t i = 0; i < most + 200 && !sent_after; ++i) {
    member.beat(0);
    CHECK(member.tcp.send(test::bytes_of(kvstore::Pull{member.epoch, {key, 0}, 0, 0})));
    const auto answer = test::read_message<kvstore::Answer>(member.tcp);
    REQUIRE(answer);
    REQUIRE(answer->kind == kvstore::AnswerKind::value);
    if (answer->place) ++mapped;
    sent_after = mapped > 0 && answer->values;
  }
  CHECK(sent_after);
  CHECK(mapped == most);
  // And again where they are, once it has read them.
  CHECK(member.tcp.send(wire::encode_kv_read(mapped)));
  CHECK(member.tcp.send(test::bytes_of(kvstore::Pull{member.epoch, {key, 0}, 0, 0})));
  const auto answer = test::read_message<kvstore::Answer>(member.tcp);
  CHECK((answer && answer->place));
  ::shutdown(member.door.descriptor(), SHUT_RDWR);
  taker.join();
}

}  // namespace dpwa
