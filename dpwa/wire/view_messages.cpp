#include "dpwa/wire/view_messages.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "dpwa/wire/fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {

// Parts that several messages have.

//   process  name: u16 length (1 to 255) + UTF-8; u64 counter; u64 nonce
template <typename Side>
void fields(Side& side, Of<Side, members::ProcessId>& id) {
  side.text(id.name, 1, max_name_bytes, "name of a process");
  all(side, id.counter, id.nonce);
}

namespace {

// A set as a list in ascending order.
template <typename Side, typename Value>
void ascending(Side& side, std::set<Value>& values, std::size_t most, std::string_view what) {
  std::vector<Value> listed;
  list(side, listed, most, what, [&](auto& each) { all(side, each); });
  values = {listed.begin(), listed.end()};
  if (values.size() != listed.size() || !std::ranges::equal(values, listed))
    side.fail(Fault::bad_value, std::string(what) + " are not in ascending order");
}
template <typename Side, typename Value>
void ascending(Side& side, const std::set<Value>& values, std::size_t most, std::string_view what) {
  list(side, values, most, what, [&](const auto& each) { all(side, each); });
}

}  // namespace

//   base     u64 number; u64 digest: of a view
template <typename Side>
void fields(Side& side, Of<Side, members::Base>& base) {
  all(side, base.number, base.digest);
}

//   ballot   u64 round; process that proposes. Round 0: none, and no process follows
template <typename Side>
void fields(Side& side, Of<Side, members::Ballot>& ballot) {
  side.field(ballot.round);
  if (ballot.round != 0) fields(side, ballot.proposer);
}

//   progress u64 through; u16 number of operations beyond, and each as u64, in ascending order
template <typename Side>
void fields(Side& side, Of<Side, members::Progress>& done) {
  side.field(done.through);
  ascending(side, done.beyond, max_operations_beyond, "operations");
}

//   view     u64 run; u64 number; u64 digest of the view before; u8 quorum: 0 majority, 1 with
//            servers; u64 digest of the settings; u16 number of members, at most 4,096, and for
//            each: process; u8 1: joining; u8 1: serves; progress
template <typename Side>
void fields(Side& side, Of<Side, members::View>& view) {
  all(side, view.run, view.number, view.before);
  side.choice(view.quorum, members::Quorum::majority, members::Quorum::with_servers, "quorum");
  side.field(view.settings);
  list(side, view.members, max_view_members, "members", [&](auto& member) {
    fields(side, member.id);
    side.flag(member.joining, "joining");
    side.flag(member.serves, "serves");
    fields(side, member.done);
  });
  if constexpr (reads<Side>)
    if (!side.failed() && !view.sound()) side.fail(Fault::bad_value, "a view that cannot be");
}

// The messages.

// 0 prepare   base; ballot
template <typename Side>
void fields(Side& side, Of<Side, members::Prepare>& message) {
  all(side, message.base, message.ballot);
}

// 1 promise   base; ballot; voter: process; u8 1: granted; ballot: the highest; ballot: accepted;
//             view: accepted, where a ballot was; u8 1: the voter lives; progress; u16 number of
//             processes that it hears apply, and each
template <typename Side>
void fields(Side& side, Of<Side, members::Promise>& message) {
  all(side, message.base, message.ballot, message.voter);
  side.flag(message.granted, "promise");
  all(side, message.highest, message.accepted);
  if (message.accepted.round != 0) fields(side, message.value);
  side.flag(message.lives, "life");
  fields(side, message.done);
  ascending(side, message.hears, max_view_members, "processes");
}

// 2 accept    base; ballot; view
template <typename Side>
void fields(Side& side, Of<Side, members::Accept>& message) {
  all(side, message.base, message.ballot, message.value);
}

// 3 accepted  base; ballot; voter: process
template <typename Side>
void fields(Side& side, Of<Side, members::Accepted>& message) {
  all(side, message.base, message.ballot, message.voter);
}

// 4 installed view
template <typename Side>
void fields(Side& side, Of<Side, members::Installed>& message) {
  fields(side, message.view);
}

// 5 ask       base
template <typename Side>
void fields(Side& side, Of<Side, members::AskView>& message) {
  fields(side, message.base);
}

// 6 apply     base; u64 digest of the settings; u8 1: serves
template <typename Side>
void fields(Side& side, Of<Side, members::Apply>& message) {
  all(side, message.base, message.settings);
  side.flag(message.serves, "serves");
}

// 7 ready     base; u64 through; u64 digest of the state
template <typename Side>
void fields(Side& side, Of<Side, members::Ready>& message) {
  all(side, message.base, message.through, message.state);
}

// 8 leave     base
template <typename Side>
void fields(Side& side, Of<Side, members::Leave>& message) {
  fields(side, message.base);
}

// 9 refuse    base
template <typename Side>
void fields(Side& side, Of<Side, members::Refuse>& message) {
  fields(side, message.base);
}

// 10 beat     base; u8 1: waits in an exchange
template <typename Side>
void fields(Side& side, Of<Side, members::Beat>& message) {
  fields(side, message.base);
  side.flag(message.waits, "wait");
}

// 11 terms    u16 number of settings, at most 256, and for each: name and value, each u16 length +
//             UTF-8
template <typename Side>
void fields(Side& side, Of<Side, members::Terms>& message) {
  list(side, message.settings, max_terms, "settings", [&](auto& setting) {
    side.text(setting.first, 1, max_setting_value_bytes, "setting");
    side.text(setting.second, 0, max_setting_value_bytes, "value of a setting");
  });
}

// 12 entry    u64 group: a hash of its number and members; key: u16 length (1 to 255) + UTF-8; u32
//             length of the value, at most 256 KiB, and its bytes
template <typename Side>
void fields(Side& side, Of<Side, members::Entry>& message) {
  side.field(message.group);
  side.text(message.key, 1, members::max_entry_key_bytes, "key of an entry");
  list<std::uint32_t>(side, message.value, members::max_entry_bytes, "bytes of an entry",
                      [&](auto& byte) { side.field(byte); });
}

namespace {

template <std::size_t Index = 0>
members::GroupMessage read_kind(Reader& in, std::size_t kind) {
  if constexpr (Index < std::variant_size_v<members::GroupMessage>) {
    if (kind != Index) return read_kind<Index + 1>(in, kind);
    std::variant_alternative_t<Index, members::GroupMessage> message;
    fields(in, message);
    return message;
  } else {
    in.fail(Fault::bad_value, "a message of views of an unknown kind");
    return members::AskView{};
  }
}

template <typename Side>
void vote_fields(Side& side, Of<Side, members::Vote>& vote) {
  all(side, vote.owner, vote.promised, vote.accepted);
  if (vote.accepted.round != 0) fields(side, vote.value);
  if constexpr (reads<Side>)
    side.require(vote.accepted <= vote.promised, Fault::bad_value, "an acceptance without promise");
}

template <typename Side>
void kept_fields(Side& side, Of<Side, members::Kept>& kept) {
  fields(side, kept.installed);
  list(side, kept.votes, max_view_members, "votes", [&](auto& vote) { vote_fields(side, vote); });
  if constexpr (reads<Side>) side.require(!kept.votes.empty(), Fault::bad_value, "no vote");
}

}  // namespace

// VIEW  sender: process; u8 kind, 0 to 12; the fields of the kind; CRC32C of the body so far
std::vector<std::byte> encode(const members::ProcessId& from, const members::GroupMessage& message,
                              std::uint32_t request_id) {
  Writer out;
  fields(out, from);
  out.u8(static_cast<std::uint8_t>(message.index()));
  std::visit([&out](const auto& content) { fields(out, content); }, message);
  out.checksum();
  return std::move(out).finish(MessageType::view, request_id);
}

Decoded<ViewFrame> decode_view(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  ViewFrame frame;
  fields(in, frame.from);
  const std::uint8_t kind = in.u8();
  if (!in.failed()) frame.message = read_kind(in, kind);
  return in.finish(std::move(frame));
}

std::vector<std::byte> to_bytes(const members::Kept& kept) {
  Writer out;
  kept_fields(out, kept);
  out.checksum();
  auto frame = std::move(out).finish(MessageType::view, 0);
  return {frame.begin() + header_bytes, frame.end()};
}

Decoded<members::Kept> kept_from(std::span<const std::byte> bytes) {
  Reader in = Reader::checked(bytes);
  members::Kept kept;
  kept_fields(in, kept);
  return in.finish(std::move(kept));
}

}  // namespace dpwa::wire
