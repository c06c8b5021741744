#include "adapters/collective/sight_words.h"

#include <cstddef>

#include "dpwa/base/plain_text.h"
#include "dpwa/wire/messages.h"

namespace dpwa::collective {

std::string missing_in(const std::vector<Sight>& sights) {
  std::string names;
  for (const Sight& sight : sights) {
    if (sight.reach == Sight::Reach::answers && !sight.finished && sight.notes.seeks) continue;
    const char* why = "answers, but waits for no group";
    if (sight.reach == Sight::Reach::refused) why = "not running";
    if (sight.reach == Sight::Reach::silent) why = "no answer";
    if (sight.finished) why = "has finished";
    if (sight.reach == Sight::Reach::answers && sight.notes.formed.epoch > 0) continue;
    names += (names.empty() ? "'" : ", '") + sight.name + "' (" + why + ")";
  }
  return names;
}

std::string stranger_in(const std::vector<Sight>& sights, std::size_t self) {
  const GroupNotes& own = sights[self].notes;
  if (own.formed.epoch > 0) return "";
  std::string of_group, of_start;
  for (std::size_t place = 0; place < sights.size(); ++place) {
    const Sight& sight = sights[place];
    if (place == self) continue;
    if (sight.reach == Sight::Reach::silent && !sight.given_up) return "";  // it may be one of ours
    if (sight.reach != Sight::Reach::answers || sight.finished || sight.notes.left) continue;
    const std::string who = "'" + sight.name + "' ";
    const bool trains = sight.notes.formed.epoch > 0;
    if (trains && sight.differs.empty()) return "";  // a group that takes this node in
    std::string differs = difference_of_files(sight.notes.terms, own.terms);
    if (trains) differs = sight.differs;
    std::string& found = trains ? of_group : of_start;
    if (!found.empty()) continue;
    if (!sight.backend.empty() && sight.backend != "collective") {
      found = who + "runs backend " + to_plain_text(sight.backend, wire::max_name_bytes);
    } else if (!differs.empty()) {
      found = who + "differs: " + differs;
    }
  }
  return of_group.empty() ? of_start : of_group;
}

}  // namespace dpwa::collective
