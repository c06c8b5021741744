#include <cstdio>
#include <exception>
#include <stdexcept>

#include "dpwa/base/plain_text.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/config.h"
#include "dpwa/security/security.h"
#include "examples/train/errors.h"
#include "examples/train/options.h"
#include "examples/train/program.h"

namespace {

[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_constructors)() = dpwa::stop_signal::hold_reload;

int fail(const std::exception& error, int exit_code) {
  std::fprintf(stderr, "dpwa-train: %s\n", dpwa::one_line(error).c_str());
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = dpwa::train::parse_options(argc, argv);
    if (!parsed.run) {
      std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
      return parsed.exit_code;
    }
    dpwa::forbid_core_dumps();
    return dpwa::train::run_program(parsed.options);
  } catch (const dpwa::train::UsageError& error) {
    return fail(error, 2);
  } catch (const dpwa::ConfigError& error) {
    return fail(error, 2);
  } catch (const std::invalid_argument& error) {
    return fail(error, 2);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}
