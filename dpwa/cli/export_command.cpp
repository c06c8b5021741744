#include <CLI/App.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "dpwa/cli/app.h"
#include "dpwa/observe/export_run.h"

namespace dpwa::cli {
namespace {

struct ExportOptions {
  std::string run;
  bool csv = false;
  std::string tensorboard;
};

}  // namespace

void add_export_command(CLI::App& parent, CommandContext& context) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      parent.add_subcommand("export", "Write the metrics of a run in a form of other programs");
  command->add_option("RUN", options->run, "The folder of the run")->required();
  CLI::Option_group* form = command->add_option_group("form");
  form->add_flag("--csv", options->csv, "A table, on standard output");
  form->add_option("--tensorboard", options->tensorboard,
                   "Event files of TensorBoard, in a folder for each node below this one")
      ->type_name("FOLDER");
  form->require_option(1);
  command->callback([options, &context] {
    if (options->csv) {
      observe::write_csv(options->run, context.out);
    } else {
      observe::write_tensorboard(options->run, options->tensorboard);
    }
  });
}

}  // namespace dpwa::cli
