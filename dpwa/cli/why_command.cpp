#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/cli/app.h"
#include "dpwa/cli/asking_options.h"
#include "dpwa/cli/usage.h"
#include "dpwa/config/text.h"
#include "dpwa/diagnosis/diagnose.h"
#include "dpwa/observe/cluster_query.h"
#include "dpwa/observe/observation_of.h"

namespace dpwa::cli {
namespace {

using diagnosis::Finding;
using SteadyClock = std::chrono::steady_clock;

struct WhyOptions {
  std::string file;
  std::string node;
  std::string name;
  unsigned seconds = 4;
  unsigned timeout_ms = 1000;
  bool json = false;
};

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// One observation a second, and one at the beginning.
std::vector<diagnosis::Observation> observe_for(unsigned seconds, const observe::Asking& asking) {
  std::vector<diagnosis::Observation> observations;
  const auto begin = SteadyClock::now();
  for (unsigned i = 0; i <= seconds; ++i) {
    std::this_thread::sleep_until(begin + std::chrono::seconds(i));
    const double at_s = seconds_since(begin);
    observations.push_back(observe::observation_of(observe::ask_all(asking), at_s));
  }
  return observations;
}

// `where` may name several: "w1, w2", "w1 - w2".
bool concerns(const Finding& finding, const std::string& node) {
  std::string word;
  for (const char letter : finding.where + ' ') {
    if (letter != ' ' && letter != ',') {
      word += letter;
      continue;
    }
    if (word == node) return true;
    word.clear();
  }
  return false;
}

void require_node(const std::vector<diagnosis::Observation>& observations,
                  const WhyOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, process] : observations.back().processes) names.push_back(name);
  if (options.node.empty() || std::ranges::find(names, options.node) != names.end()) return;
  throw CLI::ValidationError("NODE", "no node or server is called " + config::shown(options.node) +
                                         "," + config::suggestion(options.node, names) +
                                         " accepted: " + config::joined(names));
}

void print_json(const std::vector<Finding>& findings, std::ostream& out) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"cause", diagnosis::to_string(finding.cause)},
                    {"where", finding.where},
                    {"share", finding.share},
                    {"evidence", finding.evidence},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json document{{"schema", 1}, {"findings", std::move(list)}};
  out << document.dump(2) << '\n';
}

void print(const std::vector<Finding>& findings, const WhyOptions& options,
           const diagnosis::Observation& last, std::ostream& out) {
  for (const Finding& finding : findings) {
    out << finding.where << ": " << diagnosis::to_string(finding.cause) << '\n'
        << wrapped("  because  " + finding.evidence) << wrapped("  do       " + finding.advice);
  }
  if (!findings.empty()) return;
  out << "nothing is wrong"
      << " with "
      << (options.node.empty() ? config::counted(last.processes.size(), "node") : options.node)
      << ", as far as " << options.seconds << " s show\n";
}

void explain(const WhyOptions& options, CommandContext& context) {
  const auto asking = observe::make_asking(options.file, options.name,
                                           std::chrono::milliseconds(options.timeout_ms));
  const auto observations = observe_for(options.seconds, asking);
  require_node(observations, options);
  auto findings = diagnosis::diagnose(observations);
  if (!options.node.empty())
    std::erase_if(findings, [&](const Finding& one) { return !concerns(one, options.node); });
  if (options.json) {
    print_json(findings, context.out);
  } else {
    print(findings, options, observations.back(), context.out);
  }
}

}  // namespace

void add_why_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* command = parent.add_subcommand(
      "why", "Name the causes that make a cluster slow, with the evidence and what to do");
  command->footer("The exit code is 0 whatever it finds.");
  add_asking_options(*command, options->file, options->name);
  command->add_option("NODE", options->node, "Only what concerns this node or server");
  command->add_option("--seconds", options->seconds, "How long to watch the cluster")
      ->check(CLI::Range(2U, 600U))
      ->capture_default_str();
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each node")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, &context] { explain(*options, context); });
}

}  // namespace dpwa::cli
