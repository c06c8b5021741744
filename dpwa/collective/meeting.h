#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/collective/step_group.h"
#include "dpwa/collectives/form_group.h"
#include "dpwa/group/shared_entries.h"

namespace dpwa::collective {

// The key under which a rank says how it is reached: nobody else may set it.
inline std::string invitation_of(int rank) {
  return "invitation/" + std::to_string(rank);
}

// Where the members of one group meet before they are connected, over the authenticated connections
// that they have (dpwa/group). There is no server: each member tells all others what it sets. So a
// key has the value that one member has set; invitation_of() only the one whose it is, where the
// ranks have names. Any thread.
class Meeting {
 public:
  using Bytes = std::vector<std::uint8_t>;

  // `stop`: ends the waits.
  Meeting(std::shared_ptr<group::SharedEntries> entries, const GroupOptions& options,
          std::stop_token stop);

  // Throw std::runtime_error; get() names the members that have not come.
  void set(const std::string& key, const Bytes& value) const;
  Bytes get(const std::string& key, std::chrono::milliseconds limit) const;
  bool has(const std::string& key) const;

 private:
  std::string writer_of(const std::string& key) const;  // a name; empty: anybody
  std::string missing() const;

  const std::shared_ptr<group::SharedEntries> entries_;
  const std::uint64_t group_;
  const int rank_;
  const std::vector<std::string> names_;  // by rank
  const std::stop_token stop_;
};

// What each rank says at `store`, a Meeting or its like, by rank: GroupTerms::exchange. `limit`: of
// a wait for one of them.
template <class Store, class... Limit>
std::vector<std::string> invitations_of_all(Store& store, const GroupOptions& options,
                                            const std::string& own, Limit... limit) {
  store.set(invitation_of(options.rank), std::vector<std::uint8_t>(own.begin(), own.end()));
  std::vector<std::string> all;
  for (int rank = 0; rank < options.size; ++rank) {
    const auto text = store.get(invitation_of(rank), limit...);
    all.emplace_back(text.begin(), text.end());
  }
  return all;
}

// What collectives::form_group() needs to know of a group. `exchange`: as of GroupTerms.
collectives::GroupTerms terms_of(
    const GroupOptions& options, std::function<void()> on_broken,
    std::function<std::vector<std::string>(const std::string& own)> exchange);

}  // namespace dpwa::collective
