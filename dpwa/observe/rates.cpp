#include "dpwa/observe/rates.h"

namespace dpwa::observe {

void Rates::add(double time, const Counters& counters) {
  if (!looks_.empty()) {
    for (const auto& [key, value] : looks_.back().counters) {
      const auto now = counters.find(key);
      if (now != counters.end() && now->second < value) {
        looks_.clear();
        break;
      }
    }
  }
  looks_.push_back({time, counters});
  while (looks_.size() > 2 && time - looks_[1].time >= window) looks_.pop_front();
}

Rates::Counters Rates::per_second() const {
  Counters rates;
  if (looks_.size() < 2) return rates;
  const Look& first = looks_.front();
  const Look& last = looks_.back();
  const double seconds = last.time - first.time;
  for (const auto& [key, value] : last.counters) {
    const auto before = first.counters.find(key);
    if (before != first.counters.end() && seconds > 0)
      rates[key] = (value - before->second) / seconds;
  }
  return rates;
}

}  // namespace dpwa::observe
