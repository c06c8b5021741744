#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/collective/step_group.h"
#include "dpwa/group/shared_entries.h"

namespace dpwa::test {

// Members of a group to be, in one process, whose entries reach the others over a queue in place of
// connections.
class MeetingMembers {
 public:
  explicit MeetingMembers(std::size_t count) {
    for (std::size_t rank = 0; rank < count; ++rank) {
      names_.push_back("w" + std::to_string(rank + 1));
      entries_.push_back(
          std::make_shared<group::SharedEntries>([this, rank](const members::Entry& entry) {
            boost::asio::post(way_, [this, rank, entry] {
              for (std::size_t other = 0; other < entries_.size(); ++other) {
                if (other != rank) entries_[other]->receive({names_[rank], 1, 1}, entry);
              }
            });
          }));
    }
  }
  ~MeetingMembers() {
    work_.reset();
    carrier_.join();
  }

  collective::GroupOptions options(std::size_t rank) const {
    collective::GroupOptions options;
    options.rank = static_cast<int>(rank);
    options.size = static_cast<int>(names_.size());
    options.names = names_;
    options.members = 7;
    options.form_timeout = std::chrono::seconds(20);
    return options;
  }
  const std::shared_ptr<group::SharedEntries>& entries(std::size_t rank) const {
    return entries_[rank];
  }

 private:
  boost::asio::io_context way_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      way_.get_executor()};
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<group::SharedEntries>> entries_;
  std::thread carrier_{[this] { way_.run(); }};
};

}  // namespace dpwa::test
