#!/usr/bin/env bash
# Tests the wheels of build/wheels with the newest patch of each minor version of torch, from 2.9 to the newest of the
# package index: one at a time, each in an environment of its own below build/wheel-tests. The Pythons take turns. Each
# trains also with the environment before it, which has another torch, and with the C++ programs of build/release. It is
# safe to run it again: versions with a result are left out.
#
# usage: scripts/check_wheel.sh [--list] [--again] [--python PYTHON]... [VERSION]...
#
#   --list     prints the versions, and does nothing
#   --again    checks also those that have a result
#   --python   one that a wheel is for; default: python3
#
# Needs several GB of disk. Ends with the table of docs/PYTHON.md; exit code 1: a version failed.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"
# shellcheck source=lib/torch_environment.sh
source "$repository/scripts/lib/torch_environment.sh"

oldest=2.9
list='' again=''
versions=() pythons=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --list) list=yes ;;
    --again) again=yes ;;
    --python) needs_value "$1" $#; pythons+=("$2"); shift ;;
    [0-9]*) versions+=("$1") ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done

[[ -x $venv/bin/pip ]] || die 'run scripts/setup.sh first'
((${#pythons[@]} > 0)) || pythons=(python3)
choose_versions "$oldest"
if [[ -n $list ]]; then
  printf '%s\n' "${versions[@]}"
  exit 0
fi
wheels=$repository/build/wheels
compgen -G "$wheels/*.whl" >/dev/null || die 'run scripts/build_wheel.sh first'
tests=$repository/build/wheel-tests
programs=$repository/build/release/bin
previous=''  # the environment before this one

# check VERSION PYTHON: writes VERSION.result, one row of the table.
check() {
  local version=$1 python=$2 folder=$tests/$1 packages test install count=0
  install=("$venv/bin/pip" --python "$folder/bin/python" install --no-compile)
  "$python" -m venv --clear --without-pip "$folder" || return 1
  run_logged "installing torch $version (several GB)" "wheel-torch-$version" "${install[@]}" "torch===$version" numpy ||
    return 1
  run_logged 'installing the wheel' "wheel-$version" "${install[@]}" --no-index --find-links "$wheels" dpwa || return 1
  packages=$(site_packages "$folder")
  export DPWA_PYTHON_PACKAGE=$packages DPWA_CLI=$packages/dpwa/bin/dpwa DPWA_EMBEDDED='' DPWA_TRAIN='' OMP_NUM_THREADS=1
  [[ ! -x $programs/dpwa_embedded ]] || DPWA_EMBEDDED=$programs/dpwa_embedded DPWA_TRAIN=$programs/dpwa-train
  [[ -z $previous ]] || export DPWA_OTHER_PYTHON=$previous/bin/python
  for test in package contract device; do
    run_logged "$test" "wheel-$version-$test" "$folder/bin/python" "$repository/test/python/${test}_test.py" || return 1
    count=$((count + $(sed -nE 's/^Ran ([0-9]+) tests? .*/\1/p' "$log_folder/wheel-$version-$test.log")))
  done
  printf '| %s | %s | %s | %s | %s |\n' "$version" "$("$folder/bin/python" -c 'import platform; print(platform.python_version())')" \
    "$count" "${previous##*/}" "$(date -u +%F)" >"$tests/$version.result"
}

end_jobs_at_exit 'what is there is kept: run it again to continue'
mkdir -p "$tests"
failed=()
turn=0
for version in "${versions[@]}"; do
  python=${pythons[turn++ % ${#pythons[@]}]}
  [[ -z $again ]] || rm -f "$tests/$version.result"
  [[ ! -f $tests/$version.result ]] || continue
  heading "torch $version, $python"
  check "$version" "$python" || failed+=("$version")
  [[ -z $previous ]] || rm -rf "$previous"
  previous=$tests/$version
done
[[ -z $previous ]] || rm -rf "$previous"

printf '| torch | Python | tests passed | also with torch | on |\n|---|---|---:|---|---|\n'
for version in "${versions[@]}"; do
  cat "$tests/$version.result" 2>/dev/null || printf '| %s | | failed | | |\n' "$version"
done
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
