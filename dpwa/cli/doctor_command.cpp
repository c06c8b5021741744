#include <sys/resource.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "dpwa/base/port_holder.h"
#include "dpwa/base/process_memory.h"
#include "dpwa/base/time.h"
#include "dpwa/cli/app.h"
#include "dpwa/cli/asking_options.h"
#include "dpwa/cli/doctor_checks.h"
#include "dpwa/cli/local_machine.h"
#include "dpwa/net/free_ports.h"
#include "dpwa/net/path_measure.h"
#include "dpwa/net/peer_address.h"
#include "dpwa/net/status_query.h"
#include "dpwa/node/observe_port.h"
#include "dpwa/observe/cluster_query.h"

namespace dpwa::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct DoctorOptions {
  std::string file;
  std::string name;
  std::uint64_t model_bytes = 0;
  unsigned timeout_ms = 2000;
};

// A seed of a file without nodes stands for the process there.
std::vector<NodeEntry> all_processes(const Config& config) {
  std::vector<NodeEntry> all = config.nodes;
  for (NodeEntry seed : config.nodes.empty() ? config.seeds : std::vector<NodeEntry>()) {
    seed.name = "seed " + seed.host;
    all.push_back(std::move(seed));
  }
  if (config.backend == Backend::kvstore)
    all.insert(all.end(), config.kvstore.servers.begin(), config.kvstore.servers.end());
  return all;
}

std::string listening_problem(const NodeEntry& entry) {
  const std::string address = entry.bind_address.empty() ? entry.bind_host() : entry.bind_address;
  const std::string problem = net::listening_problem(address, entry.port);
  if (problem.empty()) return "";
  const std::string holder = port_holder(address, entry.port);
  return "cannot listen on " + address + ": " + problem + (holder.empty() ? "" : " by " + holder);
}

// Asked alone, once more, a process tells how long an answer takes and what time it is there.
void time_answer(const observe::Asking& asking, const PeerAddress& address,
                 DoctorFacts::Other& other) {
  const auto wall_before = static_cast<double>(wall_clock_us());
  const auto before = SteadyClock::now();
  const auto answer =
      query_status(asking.config.cluster, {address}, asking.timeout, asking.security.get()).at(0);
  const std::chrono::duration<double> took = SteadyClock::now() - before;
  other.answer_ms = 1e3 * took.count();
  const observe::Json document = observe::parse_status(answer);
  const auto wall = document.find("wall");
  if (wall != document.end() && wall->is_number())
    other.clock_ahead_s = wall->get<double>() - (wall_before / 1e6 + took.count() / 2);
  other.model_bytes = observe::count_in(document, "model_bytes");
  constexpr std::uint64_t most = std::uint64_t{32} << 20, least = std::uint64_t{1} << 20;
  const PathMeasure path =
      measure_path(asking.config.cluster, address, std::min(most, other.model_bytes),
                   asking.timeout, asking.security.get());
  other.round_trip_ms = 1e3 * std::chrono::duration<double>(path.round_trip).count();
  if (path.bytes >= least)
    other.bytes_per_s =
        static_cast<double>(path.bytes) / std::chrono::duration<double>(path.time).count();
}

// The last number of a setting of the kernel; 0: it has none.
std::uint64_t kernel_setting(const char* file) {
  std::ifstream in(file);
  std::uint64_t last = 0;
  for (std::uint64_t number = 0; in >> number;) last = number;
  return last;
}

void ask_others(const observe::Asking& asking, const std::vector<NodeEntry>& entries,
                DoctorFacts& facts) {
  std::vector<PeerAddress> addresses;
  for (const NodeEntry& entry : entries) addresses.push_back(peer_address(entry));
  const auto answers =
      query_status(asking.config.cluster, addresses, asking.timeout, asking.security.get());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const NodeEntry& entry = entries[i];
    DoctorFacts::Other other{entry.name, entry.host + ":" + std::to_string(entry.port)};
    other.is_resolved = !entry.addresses.empty();
    other.answers = answers[i].error.empty();
    other.nobody_listens = answers[i].nobody_listens;
    other.error = answers[i].error;
    if (other.answers) time_answer(asking, addresses[i], other);
    facts.others.push_back(std::move(other));
  }
}

void read_limits(DoctorFacts& facts) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts.open_files = files.rlim_cur;
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range >> facts.first_outgoing_port >> facts.last_outgoing_port;
  facts.available_bytes = available_bytes();
  facts.connections_at_once = kernel_setting("/proc/sys/net/core/somaxconn");
  facts.receive_buffer = kernel_setting("/proc/sys/net/ipv4/tcp_rmem");
  facts.send_buffer = kernel_setting("/proc/sys/net/ipv4/tcp_wmem");
}

DoctorFacts facts_of(const DoctorOptions& options) {
  const auto asking = observe::make_asking(options.file, options.name,
                                           std::chrono::milliseconds(options.timeout_ms));
  (void)observe_token(asking.config);
  DoctorFacts facts;
  facts.backend = asking.config.backend;
  facts.timeout_s = std::chrono::duration<double>(asking.config.gossip.timeout).count();
  facts.by_seeds = asking.config.nodes.empty();
  facts.model_bytes = options.model_bytes;
  read_limits(facts);
  const LocalMachine machine;
  std::vector<NodeEntry> others;
  for (const NodeEntry& entry : all_processes(asking.config)) {
    if (!machine.hosts(entry)) {
      others.push_back(entry);
      continue;
    }
    DoctorFacts::Own own{entry.name, entry.port};
    own.problem = listening_problem(entry);
    own.runs = !own.problem.empty() && query_status(asking.config.cluster, {peer_address(entry)},
                                                    asking.timeout, asking.security.get())
                                           .at(0)
                                           .error.empty();
    facts.own.push_back(std::move(own));
  }
  ask_others(asking, others, facts);
  return facts;
}

void examine(const DoctorOptions& options, CommandContext& context) {
  const char* const words[] = {"ok       ", "warning  ", "FAILURE  "};
  for (const Check& check : checks_of(facts_of(options))) {
    context.out << words[static_cast<std::size_t>(check.level)] << check.text << '\n';
    if (check.level == Check::Level::failure) context.exit_code = 1;
  }
}

}  // namespace

void add_doctor_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = parent.add_subcommand(
      "doctor",
      "Check this machine for a run of a cluster file: ports, names, peers, clocks, limits");
  command->footer(
      "The exit code is 1 when a check fails. From nodes that run already it pulls up to 32 MiB, "
      "to "
      "measure the way.");
  add_asking_options(*command, options->file, options->name);
  command->add_option("--model-bytes", options->model_bytes, "Size of the parameters of the model")
      ->transform(CLI::AsSizeValue(true));
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each process")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { examine(*options, context); });
}

}  // namespace dpwa::cli
