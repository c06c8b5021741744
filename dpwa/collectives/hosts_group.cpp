#include "dpwa/collectives/hosts_group.h"

#include <algorithm>
#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa::collectives {
namespace {

// Some of the members of a group, by their streams in it.
class SomeLinks final : public Links {
 public:
  // `ranks`: of the members in `all`, which outlives this.
  SomeLinks(Links& all, std::vector<int> ranks)
      : Links(static_cast<int>(std::ranges::find(ranks, all.rank()) - ranks.begin()),
              static_cast<int>(ranks.size())),
        all_(all),
        ranks_(std::move(ranks)) {}

  Ticket send(int to, std::span<const std::byte> bytes) override {
    return all_.send(rank_of(to), bytes);
  }
  Ticket receive(int from, std::span<std::byte> into) override {
    return all_.receive(rank_of(from), into);
  }
  Ticket sent(int to) const override { return all_.sent(rank_of(to)); }
  Ticket received(int from) const override { return all_.received(rank_of(from)); }
  bool idle() const override { return all_.idle(); }
  void advance() override { all_.advance(); }
  void check() const override { all_.check(); }
  void set_timeout(Duration timeout) override { all_.set_timeout(timeout); }
  void abort(int lost) noexcept override { all_.abort(lost); }
  int lost() const override { return all_.lost(); }

 private:
  int rank_of(int member) const { return ranks_[static_cast<std::size_t>(member)]; }

  Links& all_;
  const std::vector<int> ranks_;
};

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

std::vector<int> first_ranks(const std::vector<std::vector<int>>& hosts) {
  std::vector<int> ranks;
  for (const std::vector<int>& host : hosts) ranks.push_back(host.front());
  return ranks;
}

}  // namespace

void HostsBreak::break_all(int lost) noexcept {
  const MutexLock lock(mutex_);
  if (!lost_) lost_ = lost;
  if (links_ != nullptr) links_->abort(*lost_);
  if (local_ != nullptr) local_->abort(-1);
}

void HostsBreak::join(Links* links, SharedGroup* local) {
  const MutexLock lock(mutex_);
  links_ = links;
  local_ = local;
  if (!lost_ || links_ == nullptr) return;
  links_->abort(*lost_);
  local_->abort(-1);
}

HostsGroup::HostsGroup(std::vector<std::vector<int>> hosts, std::unique_ptr<Links> links,
                       std::unique_ptr<SharedGroup> local, std::shared_ptr<HostsBreak> broken)
    : Group(links->rank(), links->size()),
      hosts_(std::move(hosts)),
      broken_(std::move(broken)),
      links_(std::move(links)),
      local_(std::move(local)),
      all_(std::make_unique<SomeLinks>(*links_, all_ranks(size()))) {
  if (local_->rank() == 0)
    firsts_ =
        std::make_unique<RemoteGroup>(std::make_unique<SomeLinks>(*links_, first_ranks(hosts_)));
  broken_->join(links_.get(), local_.get());
}

HostsGroup::~HostsGroup() {
  broken_->join(nullptr, nullptr);
}

// What breaks a part breaks the whole; the news of the links say who is to blame.
template <typename Operation>
void HostsGroup::run(const Operation& operation) {
  try {
    operation();
  } catch (const GroupBroken&) {
    abort(-1);
    throw GroupBroken(lost(), "the group is broken");
  }
}

void HostsGroup::allreduce(std::span<std::byte> data, DType type, Reduction reduction) {
  run([&] {
    local_->allreduce(data, type, reduction);
    if (firsts_) firsts_->allreduce(data, type, reduction);
    local_->broadcast(data, 0);
  });
}

void HostsGroup::broadcast(std::span<std::byte> data, int root) {
  DPWA_INVARIANT(root >= 0 && root < size(), "a root is a member", root, size());
  run([&] {
    std::size_t host = 0;
    while (std::ranges::find(hosts_[host], root) == hosts_[host].end()) ++host;
    const auto place = std::ranges::find(hosts_[host], root) - hosts_[host].begin();
    const bool is_here = std::ranges::find(hosts_[host], rank()) != hosts_[host].end();
    if (is_here) local_->broadcast(data, static_cast<int>(place));
    if (firsts_) firsts_->broadcast(data, static_cast<int>(host));
    if (!is_here) local_->broadcast(data, 0);
  });
}

void HostsGroup::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  run([&] { all_.allgather(own, all); });
}

void HostsGroup::alltoall(std::span<const std::byte> from, std::span<const std::size_t> sent,
                          std::span<std::byte> into, std::span<const std::size_t> received) {
  run([&] { all_.alltoall(from, sent, into, received); });
}

void HostsGroup::barrier() {
  run([&] {
    local_->barrier();
    if (firsts_) firsts_->barrier();
    local_->barrier();
  });
}

void HostsGroup::set_timeout(Duration timeout) {
  local_->set_timeout(timeout);
  links_->set_timeout(timeout);
}

}  // namespace dpwa::collectives
