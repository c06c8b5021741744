#include "bench/serve.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "bench/open_sockets.h"
#include "bench/system_call.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/base/standard_output.h"
#include "dpwa/base/version.h"
#include "dpwa/config/config.h"
#include "interpolation/kernels/kernels.h"

namespace dpwa::bench {
namespace {

// Lets this process, with all threads that it starts from now on, run on one of the cores that it
// may use: the `index`th, counted round and round.
void pin_to_core(std::size_t index) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) fail("cannot tell the usable cores");
  std::size_t left = index % static_cast<std::size_t>(CPU_COUNT(&usable));
  std::size_t core = 0;
  while (!CPU_ISSET(core, &usable) || left-- > 0) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) fail("cannot keep to one core");
}

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::unique_ptr<Measurer> make(const Json& job, const Kinds& kinds) {
  if (job.contains("core")) pin_to_core(job.at("core"));
  if (job.contains("instruction_set"))
    kernels::use_instruction_set(job.at("instruction_set").get<std::string>());
  const auto kind = kinds.find(job.at("kind"));
  if (kind == kinds.end()) throw std::invalid_argument("unknown kind");
  return kind->second(job);
}

Json answer(Measurer& measurer, const Json& command) {
  const auto& what = command.at("do");
  if (what == "mark")
    return {{"cpu_s", processor_seconds()}, {"tcp_bytes", open_sockets().bytes_received}};
  if (what == "memory")
    return {{"smaps", text_of("/proc/self/smaps")},
            {"status", text_of("/proc/self/status")},
            {"congestion_control", open_sockets().congestion_controls}};
  return measurer.answer(command);
}

void send(const Json& document) {
  std::cout << document.dump() << std::endl;
  if (!std::cout) throw std::runtime_error("nobody takes the results");
}

int refuse(const std::exception& error, bool usage) {
  send({{"error", one_line(error)}, {"usage", usage}});
  return usage ? 2 : 1;
}

}  // namespace

int serve(int argc, char** argv, const Kinds& kinds) {
  hold_standard_descriptors();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string line;
  try {
    if (argc > 1 && argv[1] == std::string("--version")) {
      std::cout << version() << '\n';
      return 0;
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
    return refuse(error, true);
  } catch (const std::invalid_argument& error) {
    return refuse(error, true);
  } catch (const std::exception& error) {
    return refuse(error, false);
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
