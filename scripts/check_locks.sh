#!/usr/bin/env bash
# Lets clang check the annotations of dpwa/base/threads.h, which say which mutex guards what, in the sources that no
# fuzzer builds: adapters/, bench/ and dpwa/cli/. The build of the fuzzers checks all others. Both also refuse static
# objects that are destroyed at exit(), which leaves the threads of nodes running.
#
# usage: scripts/check_locks.sh [--jobs 2]
#
# Exit code 1: something is used without its mutex. Needs clang 16 or later, which scripts/fuzz.sh installs.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/clang.sh
source "$repository/scripts/lib/clang.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"

jobs=2
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --jobs) needs_value "$1" $#; jobs=$2; shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs takes a whole number above 0, not '$jobs'"

compiler=$(find_clang) || die 'no clang of version 16 or later: run scripts/fuzz.sh first, which installs one'
[[ -f $torch_record ]] || die 'the build is not set up: run scripts/setup.sh first'
torch=$(dirname -- "$(<"$torch_record")")/../../include

cd "$repository"
# A source belongs to the list when it or its own header has a mutex.
mapfile -t sources < <(
  grep -rlE 'dpwa/base/threads\.h|Mutex' --include='*.h' --include='*.cpp' adapters bench dpwa/cli |
    sed 's/\.h$/.cpp/' | sort -u | while read -r file; do [[ ! -f $file ]] || echo "$file"; done
)
((${#sources[@]} > 0)) || die 'found no source with a mutex'

# check SOURCE: one whose engine has no headers here is left out.
check() {
  local said
  said=$("$compiler" -std=c++20 -fsyntax-only -Werror=thread-safety -Werror=exit-time-destructors -I . -isystem "$torch" \
    -isystem "$torch/torch/csrc/api/include" -DUSE_C10D_GLOO -DUSE_DISTRIBUTED -DUSE_RPC -DUSE_TENSORPIPE "$1" 2>&1) &&
    return
  if grep -qE "fatal error: '(mpi\.h|gloo/[^']*)' file not found" <<<"$said"; then
    echo "   left out: $1 (its engine has no headers here)"
    return
  fi
  printf '%s\n' "$said" >&2
  return 1
}
export -f check
export compiler torch
printf '%s\n' "${sources[@]}" | xargs -P "$jobs" -I '{}' bash -c 'check {}' || die 'locks: see above'
ok "locks: ${#sources[@]} sources"
