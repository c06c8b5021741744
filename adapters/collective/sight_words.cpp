#include "adapters/collective/sight_words.h"

#include <cstddef>

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
  for (std::size_t place = 0; place < sights.size(); ++place) {
    const Sight& sight = sights[place];
    const bool here = sight.reach == Sight::Reach::answers && !sight.finished && !sight.notes.left;
    if (place == self || !here) continue;
    const std::string who = "'" + sight.name + "' ";
    if (!sight.backend.empty() && sight.backend != "collective")
      return who + "runs backend " + sight.backend;
    // What else differs all members of a first group hear when they have come together.
    std::string differs = difference_of_files(sight.notes.terms, own.terms);
    if (differs.empty() && sight.notes.formed.epoch > 0) differs = sight.differs;
    if (!differs.empty()) return who + "differs: " + differs;
  }
  return "";
}

}  // namespace dpwa::collective
