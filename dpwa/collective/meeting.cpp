#include "dpwa/collective/meeting.h"

#include <stdexcept>
#include <utility>

#include "dpwa/collective/signature.h"

namespace dpwa::collective {

Meeting::Meeting(std::shared_ptr<group::SharedEntries> entries, const GroupOptions& options,
                 std::stop_token stop)
    : entries_(std::move(entries)),
      group_(options.members),
      rank_(options.rank),
      names_(options.names),
      stop_(std::move(stop)) {}

void Meeting::set(const std::string& key, const Bytes& value) const {
  if (stop_.stop_requested()) throw std::runtime_error("given up");
  if (!entries_->put({group_, key, value}))
    throw std::runtime_error("the members of the group cannot be told '" + key + "' of " +
                             std::to_string(value.size()) + " bytes");
}

Meeting::Bytes Meeting::get(const std::string& key, std::chrono::milliseconds limit) const {
  auto value =
      entries_->wait(group_, key, std::chrono::steady_clock::now() + limit, stop_, writer_of(key));
  if (value) return *std::move(value);
  if (stop_.stop_requested()) throw std::runtime_error("given up");
  const std::string late = missing();
  throw std::runtime_error(late.empty() ? "nobody has set '" + key + "'" : late + " not come");
}

bool Meeting::has(const std::string& key) const {
  return entries_->find(group_, key, writer_of(key)).has_value();
}

std::string Meeting::writer_of(const std::string& key) const {
  for (std::size_t rank = 0; rank < names_.size(); ++rank) {
    if (key == invitation_of(static_cast<int>(rank))) return names_[rank];
  }
  return {};
}

// "rank 2 has" or "ranks 2, 5 have": of the others that have set nothing.
std::string Meeting::missing() const {
  std::string ranks;
  int count = 0;
  for (std::size_t rank = 0; rank < names_.size(); ++rank) {
    if (static_cast<int>(rank) == rank_ || entries_->has_come(group_, names_[rank])) continue;
    ranks += (count++ == 0 ? "" : ", ") + shown_rank(rank, names_);
  }
  if (count == 0) return {};
  return count == 1 ? "rank " + ranks + " has" : "ranks " + ranks + " have";
}

collectives::GroupTerms terms_of(
    const GroupOptions& options, std::function<void()> on_broken,
    std::function<std::vector<std::string>(const std::string& own)> exchange) {
  collectives::GroupTerms terms;
  terms.rank = options.rank;
  terms.group = options.members ^ options.epoch;
  terms.own_address = options.own_address;
  terms.security = options.security;
  terms.names = options.names;
  terms.same_host = options.same_host;
  terms.limit = options.form_timeout;
  terms.stop = options.stop;
  terms.on_broken = std::move(on_broken);
  terms.exchange = std::move(exchange);
  return terms;
}

}  // namespace dpwa::collective
