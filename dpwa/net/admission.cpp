#include "dpwa/net/admission.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/snapshot/encoded_chunk.h"

namespace dpwa {

using wire::MessageType;

std::optional<wire::Reject> examine_hello(const wire::Hello& hello, const LocalProcess& local) {
  const auto reject = [](wire::RejectCode code, std::string reason) {
    return wire::Reject{code, std::move(reason)};
  };
  if (hello.cluster != local.cluster) {
    return reject(wire::RejectCode::cluster, "node '" + local.name + "' belongs to cluster '" +
                                                 local.cluster + "', not '" + hello.cluster + "'");
  }
  if (hello.role == wire::Role::observer) return std::nullopt;
  if (hello.node == local.name) {
    return reject(wire::RejectCode::own_name, "two nodes are named '" + local.name +
                                                  "'; give each a name of its own (--name, "
                                                  "DPWA_NAME)");
  }
  const auto unknown = [&](const std::string& why) {
    return reject(wire::RejectCode::unknown_node, "node '" + hello.node + "' " + why);
  };
  switch (local.members->admission(hello.node)) {
    case Membership::Admission::known:
      return std::nullopt;
    case Membership::Admission::closed:
      return unknown("is not in the cluster file of '" + local.name + "'");
    case Membership::Admission::full:
      return unknown("cannot join: the table of '" + local.name + "' is full");
    case Membership::Admission::may_join:
      break;
  }
  if ((hello.capabilities & wire::members_capability) == 0) {
    return unknown("is unknown to '" + local.name + "', and does not say where it can be reached");
  }
  return std::nullopt;
}

wire::Reject model_reject(const LocalProcess& local, const std::string& caller,
                          const Manifest& theirs) {
  const auto difference = first_difference({local.name, local.manifest}, {caller, theirs});
  return {wire::RejectCode::model,
          "the models of '" + local.name + "' and '" + caller +
              "' differ: " + difference.value_or("their fingerprints are not equal")};
}

std::variant<PullGrant, PullRefusal> examine_pull(const wire::Pull& pull, const LocalNode& local,
                                                  bool busy, TimePoint now) {
  auto snapshot = local.store.latest();
  const auto state = local.state.load();
  if (snapshot == nullptr) return PullRefusal{MessageType::not_ready, {}};
  // One that has not begun gives the weights that it will begin with, to be taken over.
  const bool begins_with_them = pull.full && snapshot->progress().lineage != 0;
  if (state == wire::NodeState::joining && !begins_with_them)
    return PullRefusal{MessageType::not_ready, {}};
  if (local.dormant.load() && !pull.full) return PullRefusal{MessageType::not_ready, {}};
  if (pull.known_version != 0 && pull.known_version == snapshot->progress().version) {
    PullRefusal refusal{MessageType::not_modified, {}};
    if (pull.for_final_average) refusal.has_final = snapshot->progress();
    return refusal;
  }
  // A caller that keeps the ledger knows this answer.
  if (pull.taken && now > local.fresh_until.load()) return PullRefusal{MessageType::not_fresh, {}};
  if (busy) return PullRefusal{MessageType::busy, {}};

  const std::uint64_t available =
      pull.full ? local.manifest.total_bytes() : local.manifest.exchange_bytes();
  const std::uint64_t length =
      pull.length != 0 ? pull.length : available - std::min(pull.offset, available);
  if (pull.offset % 64 != 0 || pull.offset > available || length > available - pull.offset) {
    return PullRefusal{MessageType::error, "the range " + std::to_string(pull.offset) + "+" +
                                               std::to_string(length) + " is not within " +
                                               std::to_string(available) +
                                               " bytes or does not begin on a multiple of 64"};
  }
  const ByteRange range{pull.offset, length};
  if (!holds_whole_elements(local.manifest, pull.codec, range)) {
    return PullRefusal{MessageType::error, "the range " + std::to_string(pull.offset) + "+" +
                                               std::to_string(length) +
                                               " ends within an element, which cannot be encoded"};
  }
  return PullGrant{std::move(snapshot), state, range};
}

std::vector<std::byte> encode(const PullRefusal& refusal, std::uint32_t request_id) {
  if (refusal.type == MessageType::error)
    return wire::encode(wire::Error{refusal.reason}, request_id);
  return wire::encode_empty(refusal.type, request_id);
}

}  // namespace dpwa

namespace dpwa::net {

bool is_for(const std::optional<std::vector<std::string>>& names, const std::string& name) {
  return !names || std::ranges::find(*names, name) != names->end();
}

std::string words_for(const std::vector<std::string>& names) {
  constexpr std::size_t most_bytes = 200;
  std::string words;
  for (const std::string& name : names) words += (words.empty() ? "'" : ", '") + name + "'";
  return words.empty() ? "no name" : to_plain_text(words, most_bytes);
}

}  // namespace dpwa::net
