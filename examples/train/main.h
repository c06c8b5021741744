#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/config.h"
#include "dpwa/security/security.h"
#include "examples/train/errors.h"

// The function main of the example programs. Included by one source of each.
namespace dpwa::train {
namespace {

// Notes a SIGHUP that comes while the constructors of LibTorch run.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_constructors)() = stop_signal::hold_reload;

int fail(const std::string& program, const std::exception& error, int exit_code) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), one_line(error).c_str());
  return exit_code;
}

// Parses the command line, runs and returns the exit code: that of `run`; 2 and one line for wrong
// usage, data or configuration; 1 and one line for any other failure.
template <typename Parse, typename Run>
int run_main(const std::string& program, Parse parse, Run run) {
  try {
    const auto parsed = parse();
    if (!parsed.run) {
      std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
      return parsed.exit_code;
    }
    forbid_core_dumps();
    return run(parsed.options);
  } catch (const UsageError& error) {
    return fail(program, error, 2);
  } catch (const ConfigError& error) {
    return fail(program, error, 2);
  } catch (const std::invalid_argument& error) {
    return fail(program, error, 2);
  } catch (const std::exception& error) {
    return fail(program, error, 1);
  }
}

}  // namespace
}  // namespace dpwa::train
