#include "dpwa/members/group_entries.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/plain_text.h"

namespace dpwa::members {

bool GroupEntries::put(Entry entry) {
  return add(own_, std::move(entry));
}

void GroupEntries::receive(const ProcessId& from, Entry entry) {
  Sender& sender = others_[from.name];
  if (sender.id != from) sender = {from, {}};
  add(sender.groups, std::move(entry));
  drop_beyond_bound();
}

void GroupEntries::drop_beyond_bound() {
  while (true) {
    std::size_t bytes = 0;
    Sender* oldest = nullptr;
    for (auto& [name, sender] : others_) {
      for (const OfGroup& of : sender.groups) bytes += of.bytes;
      if (!sender.groups.empty() &&
          (oldest == nullptr || sender.groups.front().came < oldest->groups.front().came))
        oldest = &sender;
    }
    if (bytes <= most_bytes_of_others) return;
    oldest->groups.pop_front();
  }
}

bool GroupEntries::add(Groups& groups, Entry entry) {
  const bool sound = !entry.key.empty() && entry.key.size() <= max_entry_key_bytes &&
                     is_plain_text(entry.key) && entry.value.size() <= max_entry_bytes;
  if (!sound) return false;
  const std::size_t bytes = entry.key.size() + entry.value.size();
  auto found = std::ranges::find(groups, entry.group, &OfGroup::group);
  if (found == groups.end()) {
    if (groups.size() == kept_groups) groups.pop_front();
    found = groups.insert(groups.end(), {entry.group, {}, 0, ++groups_});
  }
  const auto former = found->values.find(entry.key);
  const bool replaces = former != found->values.end();
  const std::size_t freed = replaces ? former->first.size() + former->second.size() : 0;
  if (found->bytes - freed + bytes > most_bytes_of_a_group) return false;
  if (!replaces && found->values.size() == most_of_a_group) return false;
  found->bytes += bytes - freed;
  found->values[std::move(entry.key)] = std::move(entry.value);
  return true;
}

const GroupEntries::OfGroup* GroupEntries::find_in(const Groups& groups, std::uint64_t group) {
  const auto found = std::ranges::find(groups, group, &OfGroup::group);
  return found == groups.end() ? nullptr : &*found;
}

const std::vector<std::uint8_t>* GroupEntries::find(std::uint64_t group, const std::string& key,
                                                    const std::string& writer) const {
  const auto value_in = [&](const Groups& groups) -> const std::vector<std::uint8_t>* {
    const OfGroup* const of = find_in(groups, group);
    if (of == nullptr) return nullptr;
    const auto found = of->values.find(key);
    return found == of->values.end() ? nullptr : &found->second;
  };
  if (const auto* const own = value_in(own_)) return own;
  for (const auto& [name, sender] : others_) {
    const bool counts = writer.empty() || name == writer;
    if (const auto* const value = counts ? value_in(sender.groups) : nullptr) return value;
  }
  return nullptr;
}

bool GroupEntries::has_come(std::uint64_t group, const std::string& name) const {
  const auto sender = others_.find(name);
  return sender != others_.end() && find_in(sender->second.groups, group) != nullptr;
}

bool GroupEntries::others_have_come(std::uint64_t group) const {
  return std::ranges::any_of(
      others_, [&](const auto& each) { return find_in(each.second.groups, group) != nullptr; });
}

std::vector<Entry> GroupEntries::own() const {
  std::vector<Entry> all;
  for (const OfGroup& of : own_) {
    for (const auto& [key, value] : of.values) all.push_back({of.group, key, value});
  }
  return all;
}

}  // namespace dpwa::members
