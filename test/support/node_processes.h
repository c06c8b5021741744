#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dpwa::test {

// The meeting of the nodes of one cluster, each on a thread or in a process of its own.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual void wait_for_all() = 0;
  virtual void drop() = 0;  // who failed or ended holds nobody up
  // A place for each node, which all see.
  virtual std::span<std::uint64_t> numbers() = 0;
};

// A process that is one node of each cluster of a test: so many processes run the same test cases
// in the same order, and meet in memory that they share.
class NodeProcess final : public Meeting {
 public:
  // This one; null: the nodes of this process are threads.
  static NodeProcess* self();
  // Starts `size` processes of this program with these arguments, each as such a node, and waits
  // for them. What they wrote; empty: all ended well.
  static std::string run(std::size_t size, const std::vector<std::string>& arguments);

  std::size_t index() const { return index_; }
  std::size_t size() const { return size_; }
  // The next cluster, which all begin at once. Its nodes have these ports.
  std::vector<std::uint16_t> begin_cluster();

  void wait_for_all() override;
  void drop() override;
  std::span<std::uint64_t> numbers() override;

 private:
  struct Shared;

  NodeProcess();

  Shared* shared_ = nullptr;
  std::size_t index_ = 0;
  std::size_t size_ = 0;
};

}  // namespace dpwa::test
