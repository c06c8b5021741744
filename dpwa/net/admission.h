#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/local_node.h"
#include "dpwa/wire/messages.h"

namespace dpwa {

// Decides from the HELLO alone whether a caller may speak to this node: the reject to answer with,
// or none. The fingerprint is not checked here: when it differs, the manifest shows which tensor to
// name. Pure.
std::optional<wire::Reject> examine_hello(const wire::Hello& hello, const LocalProcess& local);

// The reject for a caller whose model differs; with that model, `there`, naming the first tensor.
wire::Reject model_reject(const LocalProcess& local, const std::string& caller,
                          const Manifest& theirs);

// The grant of a PULL: bytes `range` of a snapshot, which does not change while it is held.
struct PullGrant {
  std::shared_ptr<const Snapshot> snapshot;
  wire::NodeState state = wire::NodeState::ready;  // of this node
  ByteRange range;
};

// The refusal of a PULL, on a connection that stays open.
struct PullRefusal {
  wire::MessageType type = wire::MessageType::error;  // or one of those without a grant
  std::string reason;                                 // of ERROR
  // The caller has this snapshot, which need not be final, and asks for its final average.
  std::optional<Progress> has_final{};
};

// The answer to a PULL, however the parameters travel. `busy`: as many replies as allowed are under
// way. Any thread.
std::variant<PullGrant, PullRefusal> examine_pull(const wire::Pull& pull, const LocalNode& local,
                                                  bool busy, TimePoint now);

std::vector<std::byte> encode(const PullRefusal& refusal, std::uint32_t request_id);

}  // namespace dpwa

namespace dpwa::net {

// Whether a connection whose other end has proved `names` (none: no certificates in use) may be
// that of node `name`. Pure.
bool is_for(const std::optional<std::vector<std::string>>& names, const std::string& name);

// The names for a log, however they came to be in a certificate.
std::string words_for(const std::vector<std::string>& names);

}  // namespace dpwa::net
