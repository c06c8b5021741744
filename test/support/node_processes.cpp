#include "test/support/node_processes.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/net/free_ports.h"
#include "test/support/child_process.h"
#include "test/support/eventually.h"
#include "test/support/temporary_directory.h"

namespace dpwa::test {
namespace {

constexpr const char* file_variable = "DPWA_TEST_MEETING";
constexpr const char* index_variable = "DPWA_TEST_NODE";
constexpr const char* size_variable = "DPWA_TEST_NODES";
constexpr std::size_t most_nodes = 8;
constexpr std::chrono::seconds longest(240);  // for all test cases

std::size_t number_in(const char* variable) {
  return std::stoul(std::getenv(variable));
}

std::string setting(const char* variable, const std::string& value) {
  return std::string(variable) + '=' + value;
}

// In memory of several processes.
class Barrier {
 public:
  void prepare(std::size_t members) {
    pthread_mutexattr_t of_mutex;
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex_, &of_mutex);
    pthread_condattr_t of_condition;
    pthread_condattr_init(&of_condition);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&ended_, &of_condition);
    members_ = members;
  }
  // Nobody waits.
  void reset(std::size_t members) { members_ = members; }

  void arrive(bool leaves) {
    pthread_mutex_lock(&mutex_);
    (leaves ? --members_ : ++waiting_);
    const std::uint64_t wait = waits_;
    if (waiting_ == members_) {
      waiting_ = 0;
      ++waits_;
      pthread_cond_broadcast(&ended_);
    }
    while (!leaves && waits_ == wait) pthread_cond_wait(&ended_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  pthread_mutex_t mutex_;
  pthread_cond_t ended_;
  std::size_t members_;
  std::size_t waiting_;
  std::uint64_t waits_;  // that have ended
};

}  // namespace

struct NodeProcess::Shared {
  Barrier clusters;  // between two of them
  Barrier nodes;     // of the present one
  std::array<std::uint64_t, most_nodes> numbers;
  std::array<std::uint16_t, most_nodes> ports;

  static Shared* map(const std::filesystem::path& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT, 0600));
    const bool ready = file.valid() && ::ftruncate(file.get(), sizeof(Shared)) == 0;
    void* const at =
        !ready ? MAP_FAILED
               : ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) throw std::runtime_error("no memory for several processes");
    return static_cast<Shared*>(at);
  }
};

NodeProcess::NodeProcess() {
  const char* const file = std::getenv(file_variable);
  if (file == nullptr) return;
  shared_ = Shared::map(file);
  index_ = number_in(index_variable);
  size_ = number_in(size_variable);
}

NodeProcess* NodeProcess::self() {
  static NodeProcess own;
  return own.shared_ == nullptr ? nullptr : &own;
}

std::string NodeProcess::run(std::size_t size, const std::vector<std::string>& arguments) {
  const TemporaryDirectory directory;
  Shared* const shared = Shared::map(directory / "meeting");
  shared->clusters.prepare(size);
  shared->nodes.prepare(size);
  const auto output_of = [&](std::size_t i) { return directory / ("node" + std::to_string(i)); };
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<ChildProcess> nodes;
  for (std::size_t i = 0; i < size; ++i)
    nodes.emplace_back(command, output_of(i),
                       std::vector{setting(file_variable, (directory / "meeting").string()),
                                   setting(index_variable, std::to_string(i)),
                                   setting(size_variable, std::to_string(size))});
  // One that has failed never meets the others again.
  const auto failed = [](ChildProcess& node) { return !node.running() && node.wait() != 0; };
  const bool ended = eventually(
      [&] {
        return std::ranges::any_of(nodes, failed) ||
               std::ranges::none_of(nodes, [](ChildProcess& node) { return node.running(); });
      },
      longest);
  const bool well = ended && std::ranges::none_of(nodes, failed);
  nodes.clear();
  ::munmap(shared, sizeof(Shared));
  if (well) return {};
  std::string words = ended ? "" : "they have not ended\n";
  for (std::size_t i = 0; i < size; ++i)
    words += "node " + std::to_string(i) + ":\n" + read_text(output_of(i));
  return words;
}

std::vector<std::uint16_t> NodeProcess::begin_cluster() {
  shared_->clusters.arrive(/*leaves=*/false);
  if (index_ == 0) {
    shared_->nodes.reset(size_);
    std::ranges::copy(net::free_ports(size_), shared_->ports.begin());
  }
  shared_->clusters.arrive(/*leaves=*/false);
  return {shared_->ports.begin(), shared_->ports.begin() + static_cast<std::ptrdiff_t>(size_)};
}

void NodeProcess::wait_for_all() {
  shared_->nodes.arrive(/*leaves=*/false);
}

void NodeProcess::drop() {
  shared_->nodes.arrive(/*leaves=*/true);
}

std::span<std::uint64_t> NodeProcess::numbers() {
  return std::span(shared_->numbers).first(size_);
}

}  // namespace dpwa::test
