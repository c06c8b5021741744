#!/usr/bin/env bash
# Sets up, builds and runs the tests. Ends with CTest's own summary and exit code.
#
# usage: scripts/test.sh [--sanitize address|thread] [--filter REGEX] [--changed REVISION]
#
#   --sanitize   the torch-free tests and the process tests, under that sanitizer; "thread" leaves out the tests that
#                have one thread
#   --filter     only the tests whose name matches
#   --changed    only the tests that the changes since this git revision can reach, such as HEAD or main
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

preset=release since=''
# Twice as many tests as processors: the tests of processes wait most of the time.
ctest_options=(--output-on-failure --no-tests=error -j $((2 * $(env -u OMP_NUM_THREADS nproc))))
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --sanitize)
      needs_value "$1" $#
      case $2 in
        address) preset=asan ;;
        thread) preset=tsan ;;
        *) usage_error "--sanitize takes address or thread, not '$2'" ;;
      esac
      shift
      ;;
    --changed) needs_value "$1" $#; since=$2; shift ;;
    --filter) needs_value "$1" $#; ctest_options+=(-R "$2"); shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done

if [[ $preset != release ]]; then
  ctest_options+=(-L '^(unit|process)$')
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$repository/test/tsan.supp}
fi

"$repository/scripts/setup.sh"
"$repository/scripts/build.sh" "$preset"
if [[ -n $since ]]; then
  reached=$repository/build/$preset/reached-tests
  "$repository/scripts/changed_tests.py" "$repository/build/$preset" --since "$since" >"$reached"
  grep -q '[1-9]' "$reached" || { say 'no test to run'; exit 0; }
  ctest_options+=(-I "$reached")
fi
heading "test: $preset"
exec ctest --test-dir "$repository/build/$preset" "${ctest_options[@]}"
