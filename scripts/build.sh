#!/usr/bin/env bash
# Builds a preset of CMakePresets.json into build/PRESET; configures first when needed.
#
# usage: scripts/build.sh [PRESET] [--target NAME]... [--jobs N]
#
#   release   everything, optimised (default)
#   install   without tests and benchmarks, for cmake --install build/install --prefix DIR
#   core      without LibTorch
#   asan      without LibTorch, with the fuzzers, under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan      without LibTorch, under ThreadSanitizer
#
# asan and tsan are compiled with clang, which is installed where there is none.
#
# Run scripts/setup.sh first: it selects the LibTorch that builds use. With DPWA_WERROR=1 in the environment warnings
# are errors, from then on in that folder too; asan and tsan always have that.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"
# shellcheck source=lib/system_packages.sh
source "$repository/scripts/lib/system_packages.sh"
# shellcheck source=lib/clang.sh
source "$repository/scripts/lib/clang.sh"

preset=release
targets=()
ninja_options=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --target) needs_value "$1" $#; targets+=("$2"); shift ;;
    --jobs) needs_value "$1" $#; ninja_options+=(-j "$2"); shift ;;
    release | install | core | asan | tsan) preset=$1 ;;
    *) usage_error "unknown preset or option '$1'" ;;
  esac
  shift
done

folder=$repository/build/$preset
cache=$folder/CMakeCache.txt
torch_dir=''
if [[ $preset == release || $preset == install ]]; then
  torch_dir=$(torch_from_environment) || torch_dir=$(cat "$torch_record" 2>/dev/null) ||
    die "the build is not set up: run scripts/setup.sh first"
  [[ -f $torch_dir/TorchConfig.cmake ]] ||
    die "LibTorch is no longer in $torch_dir: run scripts/setup.sh again"
fi

# wants_werror: true when the folder is to treat warnings as errors and does not do so yet.
wants_werror() { [[ ${DPWA_WERROR:-} == 1 ]] && ! grep -q '^DPWA_WERROR:[A-Z]*=ON$' "$cache" 2>/dev/null; }

configured_torch() { sed -n 's/^Torch_DIR:[A-Z]*=//p' "$cache"; }

# from_scratch: removes CMake's record of the folder.
from_scratch() { rm -rf "$cache" "$folder/CMakeFiles" "$folder/build.ninja"; }

configure() {
  local options=() clang
  if [[ -f $cache ]] && ! configured_here "$folder"; then
    say 'this checkout was copied or moved: configuring from scratch'
    from_scratch
  fi
  if [[ -f $cache && -n $torch_dir && $(configured_torch) != "$torch_dir" ]]; then
    say 'LibTorch has changed: configuring from scratch'
    from_scratch
  fi
  # CMake writes build.ninja each time, and the cache only when a value in it has changed.
  if [[ -f $cache && $folder/build.ninja -nt $repository/CMakePresets.json ]] && ! wants_werror; then
    return 0
  fi
  [[ -z $torch_dir ]] || options=(-D "Torch_DIR=$torch_dir")
  [[ ${DPWA_WERROR:-} != 1 ]] || options+=(-D DPWA_WERROR=ON)
  if [[ $preset == asan || $preset == tsan ]]; then
    clang=$(ensure_clang) || return 1
    [[ ! -f $cache ]] || grep -q "^CMAKE_CXX_COMPILER:.*/$clang\$" "$cache" || from_scratch
    options+=(-D "CMAKE_CXX_COMPILER=$clang")
  fi
  cd "$repository"  # where the presets are
  run_logged "configuring build/$preset" "configure-$preset" cmake --preset "$preset" "${options[@]}"
}

end_jobs_at_exit 'what is compiled is kept: run it again to continue'
heading "build: $preset"
configure || die "build/$preset is not configured"
cmake --build "$folder" "${targets[@]/#/--target=}" -- "${ninja_options[@]}" >&2 ||
  die "build/$preset did not build"
ok "build/$preset is up to date ($SECONDS s)"
