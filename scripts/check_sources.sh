#!/usr/bin/env bash
# Lets clang read sources one by one, without compiling them:
#
# - those of adapters/ that have a mutex: the annotations of dpwa/base/threads.h say which mutex guards what, and no static
#   object may be destroyed at exit(), which leaves the threads of nodes running. The builds with sanitizers check this in
#   all others.
# - with --last, sources and headers of interpolation/ and dpwa/ that the last N commits and the working tree have
#   changed, 40 at most, the latest first: each includes what it uses. Builds of several sources in a unit hide what is
#   missing.
#
# usage: scripts/check_sources.sh [--last N] [--jobs 2]
#
# Exit code 1: a source is not as it should be. Needs clang 16 or later, which scripts/build.sh asan installs.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/clang.sh
source "$repository/scripts/lib/clang.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"

jobs=2 last=''
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --last) needs_value "$1" $#; last=$2; shift ;;
    --jobs) needs_value "$1" $#; jobs=$2; shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs takes a whole number above 0, not '$jobs'"
[[ -z $last || $last =~ ^[1-9][0-9]*$ ]] || usage_error "--last takes a whole number above 0, not '$last'"

compiler=$(find_clang) || die 'no clang of version 16 or later: run scripts/build.sh asan first, which installs one'
[[ -f $torch_record ]] || die 'the build is not set up: run scripts/setup.sh first'
torch=$(dirname -- "$(<"$torch_record")")/../../include

cd "$repository"
# A source belongs to the list when it or its own header has a mutex.
mapfile -t sources < <(
  grep -rlE 'dpwa/base/threads\.h|Mutex' --include='*.h' --include='*.cpp' adapters |
    sed 's/\.h$/.cpp/' | sort -u | while read -r file; do [[ ! -f $file ]] || echo "$file"; done
)
((${#sources[@]} > 0)) || die 'found no source with a mutex'

# changed: the latest first. Those of a processor's own instructions are never in a unit.
changed() {
  { git diff --name-only HEAD; git log --format= --name-only -n "$last"; } | awk '!seen[$0]++' |
    grep -E '^(interpolation|dpwa)/.*\.(h|cpp)$' | grep -v '/kernels/' |
    while read -r file; do [[ ! -f $file ]] || echo "$file"; done | awk 'NR <= 40'
}
[[ -z $last ]] || mapfile -t -O "${#sources[@]}" sources < <(changed)

# What CMake defines for single sources (dpwa/CMakeLists.txt).
definitions=-DDPWA_VERSION='""'
for part in GOSSIP COLLECTIVE KVSTORE ENGINE_GLOO ENGINE_NCCL ENGINE_MPI; do
  definitions+=" -DDPWA_${part}_ABSENT=\"\""
done

# check SOURCE: one whose engine has no headers here is left out.
check() {
  local said warnings=() defined
  read -ra defined <<<"$definitions"
  [[ $1 == adapters/* ]] || warnings=(-Wall -Wextra -Wpedantic -Werror -Wno-pragma-once-outside-header)
  said=$("$compiler" -std=c++20 -fsyntax-only -x c++ "${warnings[@]}" -Werror=thread-safety \
    -Werror=exit-time-destructors -I . -isystem "$torch" -isystem "$torch/torch/csrc/api/include" -DUSE_C10D_GLOO \
    -DUSE_DISTRIBUTED -DUSE_RPC -DUSE_TENSORPIPE "${defined[@]}" "$1" 2>&1) && return
  if grep -qE "fatal error: '(mpi\.h|gloo/[^']*)' file not found" <<<"$said"; then
    echo "   left out: $1 (its engine has no headers here)"
    return
  fi
  printf '%s\n' "$said" >&2
  return 1
}
export -f check
export compiler torch definitions
printf '%s\n' "${sources[@]}" | sort -u | xargs -P "$jobs" -I '{}' bash -c 'check {}' || die 'sources: see above'
ok "sources: ${#sources[@]}"
