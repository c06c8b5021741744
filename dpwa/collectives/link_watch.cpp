#include "dpwa/collectives/link_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "dpwa/base/thread_failure.h"
#include "dpwa/base/thread_name.h"
#include "dpwa/collectives/group.h"
#include "dpwa/collectives/link_greeting.h"

namespace dpwa::collectives {
namespace {

// How long the end of a connection of data waits for news of its member, which come by another one.
constexpr auto patience_for_news = std::chrono::seconds(1);

std::string rank_words(int rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

LinkWatch::LinkWatch(int rank, std::vector<std::optional<LinkSocket>> news,
                     std::function<void(int lost)> on_broken, std::function<void(int rank)> on_left)
    : rank_(rank),
      on_broken_(std::move(on_broken)),
      on_left_(std::move(on_left)),
      broken_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      left_(news.size(), 0),
      members_(news.size()) {
  if (!broken_event_.valid() || !wake_event_.valid())
    throw std::runtime_error("no more descriptors can be opened (ulimit -n)");
  for (std::size_t i = 0; i < news.size(); ++i) members_[i].news = std::move(news[i]);
  thread_ = start_background_thread(
      [this] { run_or_end("the thread that watches the members", [this] { work(); }); });
}

LinkWatch::~LinkWatch() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
}

void LinkWatch::wake() const noexcept {
  ::eventfd_write(wake_event_.get(), 1);
}

int LinkWatch::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

void LinkWatch::throw_broken() const {
  const MutexLock lock(mutex_);
  throw GroupBroken(lost_, what_);
}

bool LinkWatch::set_broken(int lost, const std::string& what) {
  if (broken_) return false;
  lost_ = lost;
  what_ = what;
  broken_.store(true, std::memory_order_release);
  ::eventfd_write(broken_event_.get(), 1);
  changed_.notify_all();
  return true;
}

void LinkWatch::break_off(int lost, const std::string& what) noexcept {
  {
    const MutexLock lock(mutex_);
    if (!set_broken(lost, what)) return;
  }
  wake();
}

void LinkWatch::ended(int rank, const std::string& what) noexcept {
  {
    const TimePoint until = std::chrono::steady_clock::now() + patience_for_news;
    const auto at = static_cast<std::size_t>(rank);
    MutexLock lock(mutex_);
    while (!broken_ && left_[at] == 0 && changed_.wait_until(lock, until)) {
    }
    if (broken_) return;
    set_broken(rank,
               rank_words(rank) + (left_[at] != 0 ? " has left the group" : " is gone: " + what));
  }
  wake();
}

void LinkWatch::tell(bool broken) noexcept {
  const LinkNews news = broken ? LinkNews{LinkNews::Kind::broken, lost()} : LinkNews{};
  auto encoded = news.encode();
  const iovec part{encoded.data(), encoded.size()};
  for (Member& member : members_) {
    // So few bytes do not fill a connection. One that has ended is no matter any more.
    if (member.news) static_cast<void>(member.news->write_some(std::span(&part, 1)));
  }
}

void LinkWatch::read_news(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  while (member.news) {
    std::array<std::byte, LinkNews::bytes> rest{};
    const iovec part{rest.data(), LinkNews::bytes - member.said.size()};
    const auto count = member.news->read_some(std::span(&part, 1));
    if (!count) {
      member.news.reset();
      if (!member.left) break_off(rank, rank_words(rank) + " is gone: " + count.error().detail);
      return;
    }
    if (*count == 0) return;
    member.said.insert(member.said.end(), rest.begin(),
                       rest.begin() + static_cast<std::ptrdiff_t>(*count));
    if (member.said.size() < LinkNews::bytes) continue;
    const auto news = LinkNews::decode(std::span<const std::byte, LinkNews::bytes>(member.said),
                                       static_cast<int>(members_.size()));
    member.said.clear();
    if (!news) {
      member.news.reset();
      break_off(rank, rank_words(rank) + " sends what is no news of the group");
    } else if (news->kind == LinkNews::Kind::farewell) {
      member.left = true;
      {
        const MutexLock lock(mutex_);
        left_[static_cast<std::size_t>(rank)] = 1;
        changed_.notify_all();
      }
      if (on_left_) on_left_(rank);
    } else {
      const std::string gone = news->lost < 0 ? "" : ": " + rank_words(news->lost) + " is gone";
      break_off(news->lost, rank_words(rank) + " has ended the group" + gone);
    }
  }
}

void LinkWatch::work() {
  name_thread("dpwa-news");
  const int size = static_cast<int>(members_.size());
  // What came with the last bytes of a handshake is here already.
  for (int rank = 0; rank < size; ++rank) read_news(rank);
  std::vector<pollfd> polled;
  std::vector<int> ranks;
  bool told = false;
  for (;;) {
    if (is_broken() && !std::exchange(told, true)) {
      tell(true);
      if (on_broken_) on_broken_(lost());
    }
    {
      const MutexLock lock(mutex_);
      if (ends_ && (told || !is_broken())) break;
    }
    polled.assign(1, {wake_event_.get(), POLLIN, 0});
    ranks.assign(1, rank_);
    for (int rank = 0; rank < size; ++rank) {
      const Member& member = members_[static_cast<std::size_t>(rank)];
      if (!member.news) continue;
      polled.push_back({member.news->descriptor(), POLLIN, 0});
      ranks.push_back(rank);
    }
    if (::poll(polled.data(), polled.size(), -1) <= 0) continue;
    eventfd_t ignored = 0;
    if (polled.front().revents != 0) ::eventfd_read(wake_event_.get(), &ignored);
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) read_news(ranks[i]);
    }
  }
  if (!told) tell(false);
}

}  // namespace dpwa::collectives
