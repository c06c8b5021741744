#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/threads.h"
#include "dpwa/base/time.h"
#include "dpwa/collectives/link_socket.h"

namespace dpwa::collectives {

// What a member knows of the end of a group whose members are connected: it is broken once a member
// says so, once a connection of news ends without a farewell, or once this member breaks it, and
// stays broken. The others are told. Its thread sleeps meanwhile.
//
// Any thread.
class LinkWatch {
 public:
  // `news` by rank; none at the own one. `on_broken` is called once, on a thread of this object,
  // with the rank to blame (-1: none); it returns soon and does not destroy this object.
  // `on_left` is called there for each member that leaves in order.
  LinkWatch(int rank, std::vector<std::optional<LinkSocket>> news,
            std::function<void(int lost)> on_broken, std::function<void(int rank)> on_left = {});
  // Tells the others that this member leaves in order, where the group is not broken.
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  bool is_broken() const { return broken_.load(std::memory_order_acquire); }
  // Readable once the group is broken.
  int descriptor() const { return broken_event_.get(); }
  int lost() const;
  // Of a broken group.
  [[noreturn]] void throw_broken() const;

  // `lost`: the rank to blame; -1: none. Only the first one counts.
  void break_off(int lost, const std::string& what) noexcept;
  // The connection of data to a rank has ended. Its news say who is to blame, where they come.
  void ended(int rank, const std::string& what) noexcept;

 private:
  struct Member {
    std::optional<LinkSocket> news;
    std::vector<std::byte> said;  // of a message that is not complete
    bool left = false;            // in order
  };

  void work();
  void read_news(int rank);
  void tell(bool broken) noexcept;
  void wake() const noexcept;
  bool set_broken(int lost, const std::string& what) DPWA_REQUIRES(mutex_);

  const int rank_;
  const std::function<void(int)> on_broken_;
  const std::function<void(int)> on_left_;
  const FileDescriptor broken_event_;
  const FileDescriptor wake_event_;
  std::atomic<bool> broken_ = false;

  mutable Mutex mutex_;
  mutable Condition changed_;
  int lost_ DPWA_GUARDED_BY(mutex_) = -1;
  std::string what_ DPWA_GUARDED_BY(mutex_);
  std::vector<char> left_ DPWA_GUARDED_BY(mutex_);  // by rank
  bool ends_ DPWA_GUARDED_BY(mutex_) = false;

  std::vector<Member> members_;  // its thread only
  std::thread thread_;
};

}  // namespace dpwa::collectives
