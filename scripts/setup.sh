#!/usr/bin/env bash
# Prepares the machine for building: system packages, Python tools, LibTorch. It is safe to run it again. A run
# with nothing to do takes about a second.
#
# usage: scripts/setup.sh
#
# System packages are installed through apt (with sudo only when not root, and only when one is missing).
# LibTorch is the first of: Torch_DIR or CMAKE_PREFIX_PATH; the torch of the active Python; the CPU build pinned
# in requirements.txt, in the private environment .venv.
# DPWA_TORCH_INDEX names the package index of CPU builds for the case that pip's own has none.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/system_packages.sh
source "$repository/scripts/lib/system_packages.sh"
# shellcheck source=lib/torch.sh
source "$repository/scripts/lib/torch.sh"

case ${1:-} in
  -h | --help) show_help; exit 0 ;;
  '') ;;
  *) usage_error "unknown argument '$1'" ;;
esac

export PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off PIP_DISABLE_PIP_VERSION_CHECK=1
pip_minimum=24.1  # from here on a dry run of pip downloads no packages

# stamp_of FILE: what an up-to-date environment was made from.
stamp_of() { { "$venv/bin/python" --version && cat "$repository/$1"; } | sha256sum | cut -d' ' -f1; }

is_installed() { [[ -f $venv/stamp.$1 && $(<"$venv/stamp.$1") == "$(stamp_of "$1")" ]]; }

# installed FILE: records that the environment holds what FILE lists.
installed() { stamp_of "$1" >"$venv/stamp.$1"; }

ensure_venv() {
  # The programs in it contain its path, so an environment that was moved here is made again.
  if grep -qsF "$venv/bin/python" "$venv/bin/pip" && "$venv/bin/python" -c '' 2>/dev/null; then return 0; fi
  [[ ! -L $venv ]] || die ".venv is a link to the environment of another clone, which would be emptied: remove the link"
  run_logged 'creating the private environment .venv' venv python3 -m venv --clear "$venv" || return 1
  local have
  have=$("$venv/bin/pip" --version | awk '{print $2}')
  version_at_least "$have" "$pip_minimum" ||
    run_logged 'upgrading its pip' pip "$venv/bin/pip" install --upgrade "pip>=$pip_minimum"
}

ensure_tools() {
  if is_installed requirements-dev.txt; then
    ok 'Python tools: all there'
    return 0
  fi
  run_logged 'installing the Python tools' tools "$venv/bin/pip" install -r "$repository/requirements-dev.txt" || return 1
  installed requirements-dev.txt
}

# ensure_torch FOLDER: records the LibTorch that builds use. FOLDER empty: that of .venv, which is installed
# first if it is missing.
ensure_torch() {
  local folder=$1
  if [[ -z $folder ]]; then
    if ! folder=$(torch_of_python "$venv/bin/python") || ! is_installed requirements.txt; then
      install_torch || return 1
      installed requirements.txt
      folder=$(torch_of_python "$venv/bin/python") || {
        fail 'the torch just installed carries no CMake files'
        return 1
      }
    fi
  fi
  [[ $(cat "$torch_record" 2>/dev/null) == "$folder" ]] || printf '%s\n' "$folder" >"$torch_record" || return 1
  ok "LibTorch $(torch_version "$folder"): $folder"
}

give_up() { die 'set-up is not complete'; }

end_jobs_at_exit 'nothing is lost: run it again to continue'
heading 'set-up'
ensure_system_packages || give_up
torch_code=0
chosen_torch=$(choose_torch) || torch_code=$?
((torch_code < 2)) || give_up
ensure_venv || give_up
ensure_tools || give_up
ensure_torch "$chosen_torch" || give_up
ok "set-up complete ($SECONDS s)"
