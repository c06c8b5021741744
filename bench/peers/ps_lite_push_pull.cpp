// Pushes and pulls of one float32 value by ps-lite (https://github.com/dmlc/ps-lite), for
// comparison with dpwa. It is not built with dpwa. Where ps-lite is installed below PREFIX, in the
// root of this repository:
//   c++ -std=c++17 -O3 -march=native -I . -I PREFIX/include -o ps_lite_push_pull
//       bench/peers/ps_lite_push_pull.cpp PREFIX/lib/libps.a -lzmq -lprotobuf-lite -lpthread
//   ps_lite_push_pull PORT WORKERS SERVERS BYTES < COMMANDS
// It starts scheduler, servers and workers as processes, and speaks as
// scripts/lib/bench_step_peers.py says. A server keeps what the last push brought, and answers with
// it without a copy.
#include <ps/ps.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/peers/process.h"

namespace {

using Clock = std::chrono::steady_clock;
using dpwa::bench::processor_seconds;

ps::SArray<float> make_vector(std::size_t count) {
  return {dpwa::bench::make_vector(count), count, /*deletable=*/false};
}

// The processes share a page: what each has used of the processors.
struct Shared {
  double cpu_s[64];
};

int run_server(Shared& shared, std::size_t place) {
  std::map<ps::Key, ps::SArray<float>> values;
  ps::KVServer<float> server(0);
  server.set_request_handle(
      [&](const ps::KVMeta& meta, const ps::KVPairs<float>& request, ps::KVServer<float>* self) {
        ps::KVPairs<float> answer;
        const ps::Key key = request.keys[0];
        if (meta.push) {
          auto& value = values[key];
          if (value.size() != request.vals.size()) value = make_vector(request.vals.size());
          std::memcpy(value.data(), request.vals.data(), value.size() * sizeof(float));
        }
        if (meta.pull) {
          answer.keys = request.keys;
          answer.vals = values[key];
          answer.lens = {static_cast<int>(answer.vals.size())};
        }
        self->Response(meta, answer);
        shared.cpu_s[place] = processor_seconds();
      });
  ps::Finalize(0, true);
  return 0;
}

// A key for each server, with an equal part of the value, as MXNet cuts a large array.
class Value {
 public:
  explicit Value(std::size_t bytes) : gradient_(make_vector(bytes / 4)) {
    const auto& ranges = ps::Postoffice::Get()->GetServerKeyRanges();
    keys_.resize(ranges.size());
    lengths_.resize(ranges.size());
    const std::size_t part = bytes / 4 / ranges.size();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      keys_[i] = ranges[i].begin();
      lengths_[i] = static_cast<int>(i + 1 == ranges.size() ? bytes / 4 - i * part : part);
    }
    parameters_ = make_vector(bytes / 4);
  }

  // Push and pull in one request, as they are fastest.
  void exchange(ps::KVWorker<float>& worker) {
    worker.Wait(worker.ZPushPull(keys_, gradient_, &parameters_, &lengths_));
  }

 private:
  ps::SArray<ps::Key> keys_;
  ps::SArray<int> lengths_;
  ps::SArray<float> gradient_;
  ps::SArray<float> parameters_;
};

// Commands come by `in` as a count each, answers leave by `out`.
int run_worker(Shared& shared, std::size_t place, std::size_t bytes, FILE* in, FILE* out) {
  {
    ps::KVWorker<float> worker(0, 0);
    Value value(bytes);
    unsigned long count = 0;
    while (std::fscanf(in, "%lu", &count) == 1) {
      value.exchange(worker);
      for (unsigned long i = 0; i < count; ++i) {
        const auto from = Clock::now();
        value.exchange(worker);
        const std::chrono::nanoseconds took = Clock::now() - from;
        std::fprintf(out, "%lld\n", static_cast<long long>(took.count()));
      }
      shared.cpu_s[place] = processor_seconds();
      std::fprintf(out, "end\n");
      std::fflush(out);
    }
  }
  ps::Finalize(0, true);
  return 0;
}

struct Pipe {
  FILE* read;
  FILE* write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  return {fdopen(ends[0], "r"), fdopen(ends[1], "w")};
}

void start(const char* role, const std::function<int()>& body) {
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("DMLC_ROLE", role, 1);
  ps::Start(0);
  std::fflush(nullptr);
  _exit(body());
}

void serve_commands(const Shared& shared, std::size_t processes, const std::vector<Pipe>& to,
                    const std::vector<Pipe>& from) {
  char line[4096];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return;  // the job: nothing is in it
  std::printf("{\"ready\": true, \"name\": \"ps-lite\"}\n");
  std::fflush(stdout);
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const char* count = std::strstr(line, "\"count\":");
    if (count == nullptr) return;
    for (const Pipe& one : to) {
      std::fprintf(one.write, "%lu\n", std::strtoul(count + 8, nullptr, 10));
      std::fflush(one.write);
    }
    std::string times;
    for (const Pipe& one : from) {
      while (std::fgets(line, sizeof line, one.read) != nullptr && line[0] != 'e') {
        line[std::strcspn(line, "\n")] = 0;
        times += (times.empty() ? "" : ", ") + std::string(line);
      }
    }
    double used = 0;
    for (std::size_t i = 0; i < processes; ++i) used += shared.cpu_s[i];
    std::printf("{\"times_ns\": [%s], \"cpu_s\": %f}\n", times.c_str(), used);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: ps_lite_push_pull PORT WORKERS SERVERS BYTES\n");
    return 2;
  }
  const std::size_t workers = std::strtoul(argv[2], nullptr, 10);
  const std::size_t servers = std::strtoul(argv[3], nullptr, 10);
  const std::size_t bytes = std::strtoul(argv[4], nullptr, 10);
  setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
  setenv("DMLC_PS_ROOT_PORT", argv[1], 1);
  setenv("DMLC_NUM_WORKER", argv[2], 1);
  setenv("DMLC_NUM_SERVER", argv[3], 1);
  setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
  auto& shared = *static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  start("scheduler", [] {
    ps::Finalize(0, true);
    return 0;
  });
  std::vector<Pipe> to, from;
  for (std::size_t i = 0; i < workers; ++i) {
    to.push_back(make_pipe());
    from.push_back(make_pipe());
  }
  for (std::size_t i = 0; i < servers; ++i)
    start("server", [&, i] { return run_server(shared, workers + i); });
  for (std::size_t i = 0; i < workers; ++i)
    start("worker", [&, i] { return run_worker(shared, i, bytes, to[i].read, from[i].write); });
  serve_commands(shared, workers + servers, to, from);
  return 0;
}
