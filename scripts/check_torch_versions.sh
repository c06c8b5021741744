#!/usr/bin/env bash
# Compiles the adapters and the contract test against the newest patch of each minor version of LibTorch, from the oldest
# that dpwa takes to the newest of the package index, and runs the test. One version at a time, each in an environment of
# its own below build/torch, and all in build/torch-build, where what includes no LibTorch is compiled once. CUDA builds
# are compiled as such, and tested on the GPU if there is one. It is safe to run it again: versions with a result are left
# out, and what was compiled is kept.
#
# usage: scripts/check_torch_versions.sh [--list] [--again] [--jobs N] [VERSION]...
#
#   --list    prints the versions, and does nothing
#   --again   checks also those that have a result
#
# Ends with the table of docs/GPU.md; exit code 1: a version failed.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"
# shellcheck source=lib/torch_environment.sh
source "$repository/scripts/lib/torch_environment.sh"

list='' again=''
versions=()
ninja_options=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --list) list=yes ;;
    --again) again=yes ;;
    --jobs) needs_value "$1" $#; ninja_options+=(-j "$2"); shift ;;
    [0-9]*) versions+=("$1") ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done

[[ -x $venv/bin/pip ]] || die 'run scripts/setup.sh first'
choose_versions "$torch_minimum"
if [[ -n $list ]]; then
  printf '%s\n' "${versions[@]}"
  exit 0
fi

# check VERSION: writes the file result of its environment, one row of the table.
check() {
  local version=$1 folder=$torch_folders/$1 cuda counts
  configure_with_torch "$version" || return 1
  run_logged "compiling for torch $version" "build-torch-$version" ninja -C "$torch_build" "${ninja_options[@]}" \
    dpwa_adapters dpwa_torch_tests || return 1  # cmake passes no signal on
  OMP_NUM_THREADS=1 run_logged "the contract test with torch $version" "test-torch-$version" \
    "$torch_build/test/adapters/dpwa_torch_tests" || return 1
  cuda=$(cuda_of "$(site_packages "$folder/venv")/torch")
  counts=$(sed -nE 's/.*assertions: *([0-9]+) .*/\1/p' "$log_folder/test-torch-$version.log" | tail -n 1)
  printf '| %s | %s | %s | %s | %s |\n' "$version" "${cuda:-no}" "$("${CXX:-c++}" -dumpfullversion)" "$counts" \
    "$(date -u +%F)" >"$folder/result"
}

end_jobs_at_exit 'what is there is kept: run it again to continue'
failed=()
for version in "${versions[@]}"; do
  [[ -z $again ]] || rm -f "$torch_folders/$version/result"
  [[ ! -f $torch_folders/$version/result ]] || continue
  heading "torch $version"
  check "$version" || failed+=("$version")
done

printf '| torch | CUDA | g++ | assertions passed | on |\n|---|---|---|---:|---|\n'
for version in "${versions[@]}"; do
  cat "$torch_folders/$version/result" 2>/dev/null || printf '| %s | | | failed | |\n' "$version"
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
