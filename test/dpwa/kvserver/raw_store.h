#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/frame.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/messages.h"
#include "test/support/raw_socket.h"

namespace dpwa::test {

// Messages of the store over raw sockets, for a side that breaks its protocol.

std::vector<std::byte> bytes_of(const kvstore::Message& message, std::uint32_t request_id = 1);

// The HELLO of a process of the store of cluster "test".
wire::Hello store_hello(const std::string& name, std::uint64_t incarnation = 3);
// Says hello as this worker. None: it is not made welcome.
std::optional<wire::Welcome> introduce_as(RawSocket& socket, const std::string& name);

// The next frame, of any type of the protocol.
std::optional<RawFrame> read_any_frame(RawSocket& socket);
// The next message of the store that `Content` holds; others are passed over.
template <typename Content>
std::optional<Content> read_message(RawSocket& socket) {
  while (const auto frame = read_any_frame(socket)) {
    if (!wire::is_kv_type(frame->header.type)) continue;
    auto message = wire::decode_kv(frame->header.type, frame->body);
    if (!message) return std::nullopt;
    if (auto* content = std::get_if<Content>(&*message)) return std::move(*content);
  }
  return std::nullopt;
}

}  // namespace dpwa::test
