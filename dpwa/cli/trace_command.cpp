#include <CLI/App.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/app.h"
#include "dpwa/cli/asking_options.h"
#include "dpwa/observe/cluster_trace.h"

namespace dpwa::cli {
namespace {

struct TraceOptions {
  std::string file;
  std::string name;
  std::string folder = "traces";
  unsigned seconds = 5;
  unsigned timeout_ms = 2000;
};

void print(const observe::ProcessTrace& trace, CommandContext& context) {
  if (!trace.problem.empty()) {
    context.err << trace.name << ": " << trace.problem << '\n';
    return;
  }
  context.out << trace.name << ": " << trace.spans.size() << " spans";
  if (trace.missed > 0) context.out << ", without the first " << trace.missed;
  if (trace.ahead_us == 0) {
    context.out << "; its clock is the same";
  } else {
    context.out << "; its clock is " << std::abs(trace.ahead_us) << " us "
                << (trace.ahead_us < 0 ? "behind" : "ahead");
  }
  context.out << ", within " << trace.within_us << " us\n";
}

void trace(const TraceOptions& options, CommandContext& context) {
  const observe::Asking asking = observe::make_asking(
      options.file, options.name, std::chrono::milliseconds(options.timeout_ms));
  const auto traces = observe::record_traces(asking, std::chrono::seconds(options.seconds));
  bool any = false;
  for (const observe::ProcessTrace& trace : traces) {
    print(trace, context);
    any = any || !trace.spans.empty();
    if (!trace.problem.empty()) context.exit_code = 1;
  }
  if (any) {
    observe::write_traces(options.folder, traces);
    context.out << options.folder << "/trace.json has all of them\n";
  } else {
    context.err << "no process has spans: nothing is written\n";
    context.exit_code = 1;
  }
}

}  // namespace

void add_trace_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = parent.add_subcommand(
      "trace", "Record what every process does for some seconds, for a trace viewer");
  command->footer(
      "The files are in the Trace Event Format: open trace.json at ui.perfetto.dev or "
      "chrome://tracing. The exit code is 1 when a process does not answer.");
  add_asking_options(*command, options->file, options->name);
  command->add_option("--seconds", options->seconds, "For how long")
      ->check(CLI::Range(1U, 60U))
      ->capture_default_str();
  command->add_option("-o,--output", options->folder, "The folder for the files")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_option("--timeout-ms", options->timeout_ms, "How long to wait for each process")
      ->check(CLI::Range(1U, 600000U))
      ->capture_default_str();
  command->callback([options, &context] { trace(*options, context); });
}

}  // namespace dpwa::cli
