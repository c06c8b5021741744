#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/measurers.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/collectives/remote_group.h"
#include "dpwa/collectives/tcp_links.h"
#include "dpwa/config/config.h"
#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::bench {
namespace {

using collectives::LinkListener;
using collectives::LinkOptions;
using collectives::RemoteGroup;

constexpr std::size_t window_count = 5;

struct MemberWindow {
  std::int64_t count = 0;  // of all-reduces
  double ns = 0;
  double cpu_s = 0;
};

// A key file that is gone when all members have read it.
std::shared_ptr<const Security> security_of_members() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("dpwa-links-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  Config config;
  config.security.mode = "psk";
  config.security.key_file = (folder / "key").string();
  create_private_file(config.security.key_file, key_file_text({new_key()}));
  auto security = std::make_shared<const Security>(config, "", "");
  std::filesystem::remove_all(folder);
  return security;
}

// All-reduces of float32 by processes of this host over loopback:
//   job {"kind": "all_reduce", "nodes", "bytes", "secure": whether by TLS with a key of the
//   cluster}
//   -> {"do": "reduce", "seconds"}
//   <- {"windows": [{"count", "ns": of the slowest, "cpu_s": of all}]}
class AllReduce final : public Measurer {
 public:
  explicit AllReduce(const Json& job)
      : nodes_(job.at("nodes").get<int>()),
        bytes_(job.at("bytes").get<std::size_t>() / sizeof(float) * sizeof(float)),
        secure_(job.value("secure", false)) {}

  Json answer(const Json& command) override {
    if (command.at("do") != "reduce") throw std::invalid_argument("it reduces only");
    const double seconds = command.at("seconds").get<double>();
    LinkOptions options;
    if (secure_) options.security = security_of_members();
    std::vector<LinkListener> listeners;
    std::vector<std::string> texts;
    for (int rank = 0; rank < nodes_; ++rank) {
      listeners.emplace_back("127.0.0.1");
      texts.push_back(listeners.back().text());
    }
    std::vector<FileDescriptor> results;
    std::vector<pid_t> members;
    for (int rank = 0; rank < nodes_; ++rank) {
      int ends[2];
      if (::pipe(ends) != 0) throw std::system_error(errno, std::system_category(), "pipe");
      results.emplace_back(ends[0]);
      const FileDescriptor out(ends[1]);
      members.push_back(::fork());
      if (members.back() != 0) continue;
      ::_exit(run_member(std::move(listeners[static_cast<std::size_t>(rank)]), options, rank, texts,
                         seconds, out));
    }
    listeners.clear();
    return joined(results, members);
  }

 private:
  int run_member(LinkListener listener, const LinkOptions& options, int rank,
                 const std::vector<std::string>& texts, double seconds,
                 const FileDescriptor& out) const {
    try {
      RemoteGroup group(
          connect_links(std::move(listener), options, rank, texts, std::chrono::seconds(30)));
      const std::vector<MemberWindow> measured = measure(group, seconds);
      const auto size = measured.size() * sizeof(MemberWindow);
      return ::write(out.get(), measured.data(), size) == static_cast<ssize_t>(size) ? 0 : 1;
    } catch (const std::exception& error) {
      ::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      return 1;
    }
  }

  std::vector<MemberWindow> measure(RemoteGroup& group, double seconds) const {
    AlignedBuffer vector(bytes_);  // zeros, whose sums stay finite
    const auto reduce = [&](std::int64_t count) {
      group.barrier();
      const double used = processor_seconds();
      const auto began = SteadyClock::now();
      for (std::int64_t i = 0; i < count; ++i)
        group.allreduce(vector.bytes(), DType::float32, collectives::Reduction::sum);
      return MemberWindow{count, static_cast<double>(nanoseconds_since(began)),
                          processor_seconds() - used};
    };
    reduce(1);
    double each = reduce(2).ns / 2;
    group.allreduce(std::as_writable_bytes(std::span(&each, 1)), DType::float64,
                    collectives::Reduction::max);
    const auto count = static_cast<std::int64_t>(seconds * 1e9 / window_count / each);
    std::vector<MemberWindow> measured;
    while (measured.size() < window_count)
      measured.push_back(reduce(std::max<std::int64_t>(1, count)));
    return measured;
  }

  static Json joined(const std::vector<FileDescriptor>& results,
                     const std::vector<pid_t>& members) {
    std::vector<MemberWindow> all(window_count);
    bool failed = false;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      std::vector<MemberWindow> of_member(window_count);
      const auto size = window_count * sizeof(MemberWindow);
      failed |= ::read(results[rank].get(), of_member.data(), size) != static_cast<ssize_t>(size);
      int status = 0;
      ::waitpid(members[rank], &status, 0);
      failed |= status != 0;
      for (std::size_t i = 0; i < window_count; ++i) {
        all[i].count = of_member[i].count;
        all[i].ns = std::max(all[i].ns, of_member[i].ns);
        all[i].cpu_s += of_member[i].cpu_s;
      }
    }
    if (failed) throw std::runtime_error("a member has failed");
    Json answer{{"windows", Json::array()}};
    for (const MemberWindow& window : all)
      answer["windows"].push_back(
          {{"count", window.count}, {"ns", window.ns}, {"cpu_s", window.cpu_s}});
    return answer;
  }

  const int nodes_;
  const std::size_t bytes_;
  const bool secure_;
};

}  // namespace

std::unique_ptr<Measurer> make_all_reduce(const Json& job) {
  return std::make_unique<AllReduce>(job);
}

}  // namespace dpwa::bench
