#include "adapters/collective/membership_notes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "dpwa/base/random.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {
namespace {

using Json = nlohmann::json;

// Input from other nodes: a value of a wrong type counts as missing.
template <typename Value>
Value value_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  try {
    return found->get<Value>();
  } catch (const Json::exception&) {
    return {};
  }
}

Json membership_json(const GroupMembers& membership) {
  Json members = Json::array();
  for (const auto& member : membership.members)
    members.push_back({member.place, member.incarnation});
  return {{"epoch", membership.epoch}, {"members", std::move(members)}};
}

// Prevents an overflow when this node counts on from the epoch of a peer.
constexpr std::uint64_t largest_epoch = std::uint64_t{1} << 48;

GroupMembers membership_in(const Json& object, const char* key, std::size_t nodes) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return {};
  using Row = std::pair<std::size_t, std::uint64_t>;
  GroupMembers membership;
  membership.epoch = value_in<std::uint64_t>(*found, "epoch");
  for (const auto& [place, incarnation] : value_in<std::vector<Row>>(*found, "members"))
    membership.members.push_back({place, incarnation});
  if (!std::ranges::is_sorted(membership.members, std::ranges::less_equal{},
                              &GroupMembers::Member::place))
    return {};
  const bool known = membership.members.empty() || membership.members.back().place < nodes;
  if (!known || membership.epoch > largest_epoch) return {};
  return membership;
}

}  // namespace

const GroupMembers::Member* GroupMembers::find(std::size_t place) const {
  const auto found = std::ranges::find(members, place, &Member::place);
  return found == members.end() ? nullptr : &*found;
}

bool GroupMembers::includes(std::size_t place, std::uint64_t incarnation) const {
  const Member* member = find(place);
  return member != nullptr && member->incarnation == incarnation;
}

std::optional<int> GroupMembers::rank_of(std::size_t place) const {
  const Member* member = find(place);
  return member == nullptr ? std::nullopt
                           : std::optional<int>(static_cast<int>(member - members.data()));
}

std::uint64_t GroupMembers::hash() const {
  std::uint64_t hash = epoch;
  for (const Member& member : members) hash = derive_seed(hash, {member.place, member.incarnation});
  return hash;
}

GroupNotes group_notes_in(const Json& document, std::size_t nodes) {
  GroupNotes notes;
  if (!document.is_object()) return notes;
  const auto found = document.find("collective");
  if (found == document.end() || !found->is_object()) return notes;
  const Json& json = *found;
  notes.formed = membership_in(json, "formed", nodes);
  notes.vote = membership_in(json, "vote", nodes);
  notes.seeks = value_in<bool>(json, "seeks");
  notes.apart = value_in<bool>(json, "apart");
  notes.left = value_in<bool>(json, "left");
  notes.store_port = value_in<std::uint16_t>(json, "store_port");
  notes.lost = value_in<std::vector<std::size_t>>(json, "lost");
  std::erase_if(notes.lost, [nodes](std::size_t place) { return place >= nodes; });
  notes.engine = value_in<std::string>(json, "engine");
  notes.waits = value_in<bool>(json, "waits");
  notes.exchange = value_in<std::string>(json, "exchange");
  notes.terms = value_in<Settings>(json, "terms");
  return notes;
}

Json to_json(const GroupNotes& notes, std::size_t own_place) {
  const auto rank = notes.formed.rank_of(own_place);
  return {{"rank", rank ? Json(*rank) : Json(nullptr)},
          {"size", notes.formed.members.size()},
          {"epoch", notes.formed.epoch},
          {"engine", notes.engine},
          {"waits", notes.waits},
          {"exchange", notes.exchange},
          {"late", notes.late},
          {"seeks", notes.seeks},
          {"apart", notes.apart},
          {"left", notes.left},
          {"formed", membership_json(notes.formed)},
          {"vote", membership_json(notes.vote)},
          {"store_port", notes.store_port},
          {"lost", notes.lost},
          {"terms", notes.terms}};
}

GroupNotes NoticeBoard::read() const {
  const MutexLock lock(mutex_);
  return current_;
}

void NoticeBoard::change(const std::function<void(GroupNotes&)>& change) {
  const MutexLock lock(mutex_);
  change(current_);
  notes_.set("collective", to_json(current_, own_place_).dump());
}

}  // namespace dpwa::collective
