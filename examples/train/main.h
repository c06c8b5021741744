#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/standard_output.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/config.h"
#include "dpwa/security/security.h"

// The function main of the example programs. Included by one source of each.
namespace dpwa::train {
namespace {

// Before the constructors of LibTorch run, which take a while and open files: hears signals
// from now on.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_constructors[])() = {
    stop_signal::install_early, hold_standard_descriptors};

// Parses the command line, runs and returns the exit code: that of `run`; 2 and one line for wrong
// usage, data or configuration; 1 and one line for any other failure, also where what was printed
// could not be written.
template <typename Parse, typename Run>
int run_main(const std::string& program, Parse parse, Run run) {
  try {
    const auto parsed = parse();
    if (!parsed.run) {
      std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
      return end_output(program, parsed.exit_code);
    }
    forbid_core_dumps();
    return end_output(program, run(parsed.options));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), one_line(error).c_str());
    const bool is_usage = dynamic_cast<const ConfigError*>(&error) != nullptr ||
                          dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
    return is_usage ? 2 : 1;
  }
}

}  // namespace
}  // namespace dpwa::train
