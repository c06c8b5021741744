#include "test/dpwa/net/conversation.h"

#include <algorithm>

#include "dpwa/base/checksum.h"
#include "test/support/vector_cluster.h"

namespace dpwa::test {

wire::Hello sound_hello(std::size_t elements) {
  wire::Hello hello;
  hello.capabilities = wire::capability(wire::Codec::raw);
  hello.cluster = "test";
  hello.node = "w2";
  hello.incarnation = 3;
  hello.fingerprint = vector_manifest(elements).fingerprint();
  return hello;
}

bool introduce(RawSocket& socket, std::size_t elements) {
  if (!socket.send(wire::encode(sound_hello(elements), 1))) return false;
  const auto frame = socket.read_frame();
  return frame && frame->header.type == wire::MessageType::welcome;
}

bool welcome(RawSocket& socket, const std::string& name, std::uint32_t capabilities,
             const std::string& same_host) {
  const auto hello = socket.read_frame();
  if (!hello || hello->header.type != wire::MessageType::hello) return false;
  wire::Welcome answer;
  answer.node = name;
  answer.incarnation = 11;
  answer.capabilities = capabilities;
  answer.same_host = same_host;
  return socket.send(wire::encode(answer, hello->header.request_id));
}

std::optional<PullSeen> read_pull(RawSocket& socket) {
  const auto frame = socket.read_frame();
  if (!frame || frame->header.type != wire::MessageType::pull) return std::nullopt;
  const auto pull = wire::decode_pull(frame->body);
  if (!pull) return std::nullopt;
  return PullSeen{frame->header.request_id, *pull};
}

Progress sound_progress(std::uint64_t version) {
  Progress progress;
  progress.version = version;
  progress.lineage = 5;
  progress.clock = static_cast<double>(version);
  return progress;
}

std::vector<std::byte> snapshot_frame(const PullSeen& request, std::span<const float> values,
                                      const Progress& progress) {
  const auto payload = std::as_bytes(values);
  wire::SnapshotReplyHead head;
  head.progress = progress;
  head.length = payload.size();
  head.chunk_bytes = request.pull.chunk_bytes;
  head.unchecked_chunks = request.pull.unchecked_chunks;
  std::vector<std::byte> frame = wire::encode(head, request.request_id);
  for (std::size_t at = 0; at < payload.size(); at += head.chunk_bytes) {
    const auto chunk =
        payload.subspan(at, std::min<std::size_t>(head.chunk_bytes, payload.size() - at));
    const auto header = wire::encode_chunk_header(
        {static_cast<std::uint32_t>(chunk.size()), head.unchecked_chunks ? 0 : crc32c(chunk)});
    frame.insert(frame.end(), header.begin(), header.end());
    frame.insert(frame.end(), chunk.begin(), chunk.end());
  }
  return frame;
}

}  // namespace dpwa::test
