#!/usr/bin/env bash
# Puts the files of a data set where dpwa-train --data-dir and the demo find them. Downloads them and checks
# their SHA-256, or takes them from a folder. Does nothing when they exist. An incomplete file never has the
# name of a file of the data set.
#
# usage: scripts/prepare_data.sh mnist|cifar10 [--from DIR|URL] [--to DIR]
#
#   --from DIR   local files, plain or .gz, in DIR or in its folder mnist or cifar-10-batches-bin, or
#                cifar-10-binary.tar.gz. They may hold fewer samples than the published ones, so their form
#                is checked and not their SHA-256
#   --from URL   another source of the published files: the folder that they are in, or the archive itself
#   --to DIR     default data/mnist, data/cifar10
#
# An interrupted download is tried again. The received part stays in DIR/NAME.part, and the next call
# continues from there. Proxies: http_proxy, https_proxy, no_proxy.
# Exit code 0: the files exist; 1: they are not available; 2: wrong usage; 130: interrupted.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

case ${1:-} in
  -h | --help) show_help; exit 0 ;;
  mnist | cifar10) ;;
  '') usage_error 'the data set is missing; accepted: mnist, cifar10' ;;
  *) usage_error "unknown data set '$1'; accepted: mnist, cifar10" ;;
esac
data=$1
shift
options=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --from | --to) needs_value "$1" $#; options+=("$1=$2"); shift ;;
    --from=* | --to=*) options+=("$1") ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
command -v python3 >/dev/null || die 'python3 is needed' 2
exec_python python3 -BES "$repository/scripts/prepare_data.py" --data-folder "$data_folder" "${options[@]}" -- "$data"
