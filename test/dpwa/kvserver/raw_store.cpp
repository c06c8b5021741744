#include "test/dpwa/kvserver/raw_store.h"

#include <span>

#include "dpwa/snapshot/manifest.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/kv_routes.h"

namespace dpwa::test {

namespace {

const std::vector<wire::TypeBound>& all_types() {
  static const std::vector<wire::TypeBound> types = [] {
    std::vector<wire::TypeBound> all;
    using enum wire::KvRoute;
    for (const auto route : {worker_to_server, server_to_server, server_to_worker}) {
      const auto& some = wire::kv_types(route);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return types;
}

}  // namespace

std::vector<std::byte> bytes_of(const kvstore::Message& message, std::uint32_t request_id) {
  const wire::KvFrame frame = wire::encode(message, request_id);
  std::vector<std::byte> bytes = frame.head;
  for (const auto& part : frame.payload) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

wire::Hello store_hello(const std::string& name, std::uint64_t incarnation) {
  wire::Hello hello;
  hello.capabilities = wire::capability(wire::Codec::raw);
  hello.cluster = "test";
  hello.node = name;
  hello.incarnation = incarnation;
  hello.fingerprint = Manifest{}.fingerprint();
  return hello;
}

std::optional<wire::Welcome> introduce_as(RawSocket& socket, const std::string& name) {
  if (!socket.send(wire::encode(store_hello(name), 1))) return std::nullopt;
  const auto frame = socket.read_frame();
  if (!frame || frame->header.type != wire::MessageType::welcome) return std::nullopt;
  const auto welcome = wire::decode_welcome(frame->body);
  return welcome ? std::optional(*welcome) : std::nullopt;
}

std::optional<RawFrame> read_any_frame(RawSocket& socket) {
  const auto bytes = socket.read(wire::header_bytes);
  if (!bytes) return std::nullopt;
  const auto header = wire::decode_header(std::span(*bytes).first<wire::header_bytes>(),
                                          std::uint64_t{1} << 48, all_types());
  if (!header) return std::nullopt;
  auto body = socket.read(header->body_bytes);
  if (!body) return std::nullopt;
  return RawFrame{*header, std::move(*body)};
}

}  // namespace dpwa::test
