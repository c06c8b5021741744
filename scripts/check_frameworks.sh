#!/usr/bin/env bash
# Tests the Python package of build/release with the packages of others that it fits into: Lightning, the Trainer and
# Accelerate of Hugging Face, JAX and TensorBoard, in their newest versions, in an environment of its own below
# build/frameworks. Without them these tests are skipped. Runs the example for Lightning, too.
#
# usage: scripts/check_frameworks.sh [--again]
#
#   --again    installs the packages anew
#
# Needs about 4 GB of disk. Ends with the versions; exit code 1: a test failed, or was skipped.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

case ${1:-} in
  -h | --help) show_help; exit 0 ;;
  --again | '') ;;
  *) usage_error "unknown argument '$1'" ;;
esac
(($# < 2)) || usage_error "unknown argument '$2'"

package=$repository/build/release/python
compgen -G "$package/dpwa/_core*.so" >/dev/null || die 'run scripts/build.sh first'
[[ -x $venv/bin/python ]] || die 'run scripts/setup.sh first'
folder=$repository/build/frameworks
packages=(lightning transformers accelerate jax tensorboard)
end_jobs_at_exit 'run it again to continue'

[[ ${1:-} != --again ]] || rm -rf "$folder"
if [[ ! -e $folder/installed ]]; then
  "$venv/bin/python" -m venv --clear "$folder"
  torch=$("$venv/bin/pip" list --format freeze 2>/dev/null | sed -n 's/^torch==\([^+]*\).*/\1/p')
  run_logged 'installing torch and the packages (4 GB)' frameworks "$folder/bin/pip" install "torch==${torch:-2.13.0}" \
    numpy "${packages[@]}"
  touch "$folder/installed"
fi

export DPWA_PYTHON_PACKAGE=$package DPWA_CLI=$binaries/dpwa DPWA_EMBEDDED='' DPWA_TRAIN='' OMP_NUM_THREADS=1
[[ ! -x $binaries/dpwa_embedded ]] || DPWA_EMBEDDED=$binaries/dpwa_embedded DPWA_TRAIN=$binaries/dpwa-train
run_logged 'the tests' frameworks-tests "$folder/bin/python" "$repository/test/python/frameworks_test.py" -v
if grep 'skipped' "$log_folder/frameworks-tests.log" >&2; then die 'tests were skipped'; fi
digits=${DPWA_DATA_DIR:-$data_folder}/mnist
if [[ -d $digits ]]; then
  printf 'backend: "null"\nnodes: [{name: w1, host: 127.0.0.1, port: 1}]\n' >"$folder/alone.yaml"
  run_logged 'the example for Lightning' frameworks-example env "PYTHONPATH=$package" "$folder/bin/python" \
    "$repository/examples/python/lightning_mnist.py" --config "$folder/alone.yaml" --name w1 --data "$digits"
  say "$(latest_of "$log_folder/frameworks-example.log")"
else
  warn "$digits is missing: the example for Lightning was not run"
fi
"$folder/bin/pip" list --format freeze | grep -E "^($(IFS='|'; printf '%s' "${packages[*]}"))=="
