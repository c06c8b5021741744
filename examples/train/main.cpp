#include "examples/train/main.h"

#include "examples/train/options.h"
#include "examples/train/program.h"

int main(int argc, char** argv) {
  return dpwa::train::run_main(
      "dpwa-train", [&] { return dpwa::train::parse_options(argc, argv); },
      dpwa::train::run_program);
}
