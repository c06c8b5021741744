#include "bench/serve.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/standard_output.h"
#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

// TCP_ESTABLISHED of <netinet/tcp.h>, which does not go together with <linux/tcp.h>; that one alone
// has the byte counters.
constexpr std::uint8_t established = 1;

// The kernel's data on the open TCP connections of this process, since each was opened.
Json open_sockets() {
  std::uint64_t bytes_received = 0;
  std::set<std::string> congestion_controls;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int descriptor = std::stoi(entry.path().filename().string());
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    if (info.tcpi_state != established) continue;
    bytes_received += info.tcpi_bytes_received;  // 0 where the kernel does not count
    std::array<char, 32> name{};
    size = name.size() - 1;
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0)
      congestion_controls.insert(name.data());
  }
  return {{"tcp_bytes", bytes_received}, {"congestion_control", congestion_controls}};
}

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::unique_ptr<Measurer> make(const Json& job, const Kinds& kinds) {
  if (job.contains("instruction_set"))
    kernels::use_instruction_set(job.at("instruction_set").get<std::string>());
  const auto kind = kinds.find(job.at("kind"));
  if (kind == kinds.end()) throw std::invalid_argument("unknown kind");
  return kind->second(job);
}

Json answer(Measurer& measurer, const Json& command) {
  const auto& what = command.at("do");
  if (what == "mark") {
    Json marks = open_sockets();
    marks["cpu_s"] = processor_seconds();
    return marks;
  }
  if (what == "memory")
    return {{"smaps", text_of("/proc/self/smaps")}, {"status", text_of("/proc/self/status")}};
  return measurer.answer(command);
}

void send(const Json& document) {
  std::cout << document.dump() << std::endl;
  if (!std::cout) throw std::runtime_error("nobody takes the results");
}

int refuse(const std::string& program, const std::exception& error, bool usage) {
  const Json refusal = {{"error", one_line(error)}, {"usage", usage}};
  std::cout << refusal.dump() << std::endl;
  if (!std::cout) return end_output(program, 0);
  return usage ? 2 : 1;
}

}  // namespace

int serve(int argc, char** argv, const Kinds& kinds) {
  hold_standard_descriptors();
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  std::string line;
  try {
    if (argc > 1 && argv[1] == std::string("--version")) {
      std::cout << version() << '\n';
      return end_output(program, 0);
    }
    if (argc > 1) {
      line = argv[1];
    } else if (!std::getline(std::cin, line)) {
      return 0;
    }
    const auto measurer = make(Json::parse(line), kinds);
    Json ready = {
        {"ready", true}, {"version", version()}, {"instruction_set", kernels::instruction_set()}};
    ready.update(measurer->facts());
    send(ready);
    while (std::getline(std::cin, line)) send(answer(*measurer, Json::parse(line)));
    return 0;
  } catch (const ConfigError& error) {
    return refuse(program, error, true);
  } catch (const std::invalid_argument& error) {
    return refuse(program, error, true);
  } catch (const std::exception& error) {
    return refuse(program, error, false);
  }
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace dpwa::bench
