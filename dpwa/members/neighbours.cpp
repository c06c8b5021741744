#include "dpwa/members/neighbours.h"

namespace dpwa::members {
namespace {

// In `patience`.
constexpr int counts_as_heard = 8;
constexpr int heard_now = 2;
constexpr int denied_for = 16;

}  // namespace

void Neighbours::note(const ProcessId& from, TimePoint now) {
  facts_.gone.erase(from);
  Heard& heard = heard_[from.name];
  // A disk may have been lost, and the counter with it.
  const bool silent = now - heard.at >= counts_as_heard * patience_;
  if (from.replaces(heard.id) || (silent && heard.id != from)) heard = {from, now, {}};
  if (heard.id == from) heard.at = now;
}

void Neighbours::note_applicant(const ProcessId& from, const Apply& apply, const View& members,
                                TimePoint now) {
  const Member* const former = members.member(from.name);
  if (former != nullptr && from.replaces(former->id)) {
    const auto known = heard_.find(from.name);
    const bool speaks = known != heard_.end() && known->second.id == former->id &&
                        now - known->second.at < patience_;
    if (speaks) return;
    suspect(former->id);
  }
  note(from, now);
  Heard& heard = heard_[from.name];
  if (heard.id == from) heard.apply = apply;
}

void Neighbours::deny(const ProcessId& id, TimePoint now) {
  denied_[id] = now + denied_for * patience_;
}

void Neighbours::install(const View& view) {
  const auto is_out = [&](const ProcessId& id) { return view.member(id) == nullptr; };
  std::erase_if(facts_.gone, is_out);
  std::erase_if(facts_.leaving, is_out);
  std::erase_if(denied_, [&](const auto& each) { return !is_out(each.first); });
  facts_.ready.clear();
  for (auto& [name, heard] : heard_) {
    if (!is_out(heard.id)) heard.apply.reset();
  }
}

bool Neighbours::hears(const std::string& name, TimePoint now) const {
  const auto found = heard_.find(name);
  return found != heard_.end() && now - found->second.at < counts_as_heard * patience_;
}

bool Neighbours::hears_later(const ProcessId& former, TimePoint now) const {
  const auto found = heard_.find(former.name);
  return hears(former.name, now) && found->second.id.replaces(former);
}

std::set<std::string> Neighbours::names() const {
  std::set<std::string> names;
  for (const auto& [name, heard] : heard_) names.insert(name);
  return names;
}

std::set<ProcessId> Neighbours::applicants(TimePoint now) const {
  std::set<ProcessId> found;
  for (const auto& [name, heard] : heard_) {
    if (heard.apply && now - heard.at < heard_now * patience_) found.insert(heard.id);
  }
  return found;
}

Facts Neighbours::facts(const View& view, TimePoint now) const {
  Facts facts = facts_;
  for (const auto& [name, heard] : heard_) {
    const auto denied = denied_.find(heard.id);
    if (denied != denied_.end() && now < denied->second) continue;
    if (heard.apply && hears(name, now) && view.member(heard.id) == nullptr)
      facts.apply.emplace(heard.id, *heard.apply);
  }
  return facts;
}

}  // namespace dpwa::members
