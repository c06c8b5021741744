#include "bench/worker/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <string_view>

#include "bench/system_call.h"
#include "dpwa/base/atomic_file.h"

namespace dpwa::bench {
namespace {

// False when nothing comes within `limit`.
bool readable(int descriptor, std::chrono::milliseconds limit) {
  pollfd wanted{descriptor, POLLIN, 0};
  const int timeout = limit.count() == 0 ? -1 : static_cast<int>(limit.count());
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, timeout);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

constexpr auto patience = std::chrono::minutes(5);

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe");
  return ends;
}

}  // namespace

void JsonLines::send(const Json& document) {
  const std::string line = document.dump() + "\n";
  if (!write_all(out_, std::as_bytes(std::span(line))))
    throw std::runtime_error("a benchmark process has ended");
}

std::optional<Json> JsonLines::receive(std::chrono::milliseconds limit) {
  std::array<char, 16384> piece;
  std::size_t searched = 0;
  while (true) {
    const auto end = buffered_.find('\n', searched);
    if (end != std::string::npos) {
      Json document = Json::parse(std::string_view(buffered_).substr(0, end));
      buffered_.erase(0, end + 1);
      return document;
    }
    searched = buffered_.size();
    if (!readable(in_, limit)) throw std::runtime_error("a benchmark process does not answer");
    const auto count = ::read(in_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    buffered_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

Child::Pipes Child::launch(const std::vector<std::string>& command) {
  ::signal(SIGPIPE, SIG_IGN);  // a child that has ended shows as a failed write
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto input = make_pipe();
  const auto output = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail("cannot start a process");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    if (::getppid() != parent) ::_exit(127);  // it ended before the line above
    ::dup2(input[0], STDIN_FILENO);
    ::dup2(output[1], STDOUT_FILENO);
    ::execv(arguments.front(), arguments.data());
    ::_exit(127);
  }
  ::close(input[0]);
  ::close(output[1]);
  return {input[1], output[0], pid};
}

Child::Child(const std::vector<std::string>& command) : Child(launch(command)) {}

Child::Child(const Pipes& pipes) : pipes_(pipes), lines_(pipes.from_child, pipes.to_child) {}

Child::~Child() {
  ::close(pipes_.to_child);
  ::close(pipes_.from_child);
  ::kill(pipes_.pid, SIGKILL);
  ::waitpid(pipes_.pid, nullptr, 0);
}

Json Child::receive() {
  auto document = lines_.receive(patience);
  if (!document) throw std::runtime_error("a benchmark process has ended");
  if (const auto error = document->find("error"); error != document->end())
    throw std::runtime_error(error->get<std::string>());
  return *std::move(document);
}

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace dpwa::bench
