#!/usr/bin/env bash
# Puts the files of a data set where dpwa-train --data-dir and the demo find them. Downloads them and
# checks their SHA-256, or takes them from a folder. Nothing is done when they are there; nothing that
# is not whole ever has the name of a file of the data set.
#
# usage: scripts/prepare_data.sh mnist|cifar10 [--from DIR|URL] [--to DIR]
#
#   --from DIR   files at hand, plain or .gz, in DIR or in its folder mnist or cifar-10-batches-bin, or
#                cifar-10-binary.tar.gz; they may be fewer than the published ones, so their form is
#                checked, and not their SHA-256
#   --from URL   another place of the published files: the folder that they are in, or the very archive
#   --to DIR     default data/mnist, data/cifar10
#
# A download that breaks off is tried again; what has come stays in DIR/NAME.part, and the next call
# goes on from there. Proxies: http_proxy, https_proxy, no_proxy.
# Exit code 0: the files are there; 1: they cannot be had; 2: wrong usage; 130: interrupted.
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
exec python3 -B "$repository/scripts/prepare_data.py" --data-folder "$data_folder" "${options[@]}" -- "$data"
