#include "dpwa/collective/group_notes.h"

#include <nlohmann/json.hpp>

#include "dpwa/net/local_process.h"

namespace dpwa::collective {
namespace {

using Json = nlohmann::json;

Json to_json(const GroupNotes& notes, std::size_t own_place) {
  const auto rank = notes.formed.rank_of(own_place);
  Json members = Json::array();
  for (const auto& member : notes.formed.members) members.push_back(member.id.name);
  return {{"rank", rank ? Json(*rank) : Json(nullptr)},
          {"size", notes.formed.members.size()},
          {"epoch", notes.formed.view},
          {"members", std::move(members)},
          {"view", notes.view},
          {"engine", notes.engine},
          {"waits", notes.waits},
          {"exchange", notes.exchange},
          {"late", notes.late},
          {"seeks", notes.seeks},
          {"minority", notes.minority},
          {"apart", notes.apart},
          {"left", notes.left}};
}

}  // namespace

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
