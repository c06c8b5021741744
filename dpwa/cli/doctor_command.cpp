#include <sys/resource.h>

#include <CLI/App.hpp>
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
#include "dpwa/net/peer_address.h"
#include "dpwa/net/status_query.h"
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

std::vector<NodeEntry> all_processes(const Config& config) {
  std::vector<NodeEntry> all = config.nodes;
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
}

DoctorFacts facts_of(const DoctorOptions& options) {
  const auto asking = observe::make_asking(options.file, options.name,
                                           std::chrono::milliseconds(options.timeout_ms));
  DoctorFacts facts;
  facts.backend = asking.config.backend;
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
  command->footer("The exit code is 1 when a check fails. It does not measure bandwidth.");
  add_asking_options(*command, options->file, options->name);
  command->add_option("--model-bytes", options->model_bytes, "Size of the parameters of the model")
      ->transform(CLI::AsSizeValue(true));
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each process")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { examine(*options, context); });
}

}  // namespace dpwa::cli
