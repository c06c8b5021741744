#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dpwa/session/incoming.h"
#include "dpwa/snapshot/manifest.h"
#include "test/dpwa/wire/samples.h"

namespace dpwa::test {

// Bytes that come in reads of a most size, in place of a connection.
class Source {
 public:
  explicit Source(std::span<const std::byte> bytes,
                  std::size_t most = std::numeric_limits<std::size_t>::max())
      : rest_(bytes), most_(most) {}

  std::span<const std::byte> rest() const { return rest_; }  // that has not been read
  // One read of what is wanted; false: nothing is left.
  bool read_into(session::Incoming& incoming) {
    if (rest_.empty()) return false;
    const auto want = incoming.want();
    const std::size_t count = std::min({want.target.size(), most_, rest_.size()});
    std::memcpy(want.target.data(), rest_.data(), count);
    rest_ = rest_.subspan(count);
    incoming.took(count);
    return true;
  }
  bool read_until_ready(session::Incoming& incoming) {
    while (!incoming.ready()) {
      if (!read_into(incoming)) return false;
    }
    return true;
  }
  // None: it is not whole.
  std::optional<wire::Decoded<session::Frame>> next(session::Incoming& incoming,
                                                    const session::Expected& expected) {
    incoming.expect(expected);
    if (!read_until_ready(incoming)) return std::nullopt;
    return incoming.take();
  }

 private:
  std::span<const std::byte> rest_;
  std::size_t most_;
};

// All frames that there are.
inline session::Expected any_frame() {
  static const auto& kv = *new auto(wire::bounds());
  session::Expected all{std::span<const wire::TypeBound>(kv)};
  for (unsigned number = 0; number < wire::TypeSet::numbers; ++number)
    all.types.add(static_cast<wire::MessageType>(number));
  all.most_snapshot_bytes = max_snapshot_bytes;
  return all;
}

// The whole body of `frame`; of a SNAPSHOT its parts, `part_bytes` long, land first.
inline std::optional<std::vector<std::byte>> whole_body(Source& source, session::Incoming& incoming,
                                                        session::Frame frame,
                                                        std::size_t part_bytes) {
  std::vector<std::byte> body = std::move(frame.body);
  body.insert(body.end(), frame.payload.begin(), frame.payload.end());
  while (incoming.unlanded_bytes() > 0) {
    std::vector<std::byte> part(std::min<std::uint64_t>(part_bytes, incoming.unlanded_bytes()));
    incoming.land(part);
    if (!source.read_until_ready(incoming)) return std::nullopt;
    body.insert(body.end(), part.begin(), part.end());
  }
  return body;
}

}  // namespace dpwa::test
