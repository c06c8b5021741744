#!/usr/bin/env bash
# Starts every node of a cluster file that belongs to this host: one process per node, pinned to its cores
# with as many threads, and with its own log. Waits for them, and prints their steps and losses about every 10 s.
# Ctrl-C or SIGTERM stops all of them gracefully.
# With backend kvstore it starts the servers of this host first, and ends them after the last node, also after nodes
# that another run.sh has started for the same file. When a server cannot start, it ends the nodes.
#
# usage: scripts/run.sh CLUSTER.yaml [--only NODE]... [--run-dir DIR] [--detach [--wait SECONDS]]
#                       [-- TRAINER ARGUMENTS]
#
#   CLUSTER.yaml may be a pipe, as in scripts/run.sh <(ssh head cat cluster.yaml). It is read once, and the
#   nodes use the copy, cluster.yaml in the folder of the run. scripts/stop.sh accepts that copy too.
#
#   --only      only this node (or server): starts one that has ended again, in the run of the others. When none
#               runs and the trainer gets --resume, in the folder of the latest run, if that was of the same file
#   --run-dir   folder for logs, metrics and results (default runs/TIME, linked as runs/latest: in the checkout or, for
#               an installed dpwa, in the working folder)
#   --detach    returns once every node trains, or names the nodes that do not, with the end of their logs;
#               the other nodes continue. scripts/stop.sh ends them
#   --wait      longest wait of --detach (default 60 s plus start_wait of the file); 0: does not wait
#
# All messages go to standard error: scripts/run.sh CLUSTER.yaml 2>&1 | tee log
# Environment: DPWA_TRAIN and DPWA_CLI name other binaries than those of build/release/bin, or of the bin
# folder of an installed dpwa.
# Exit code 0: every node succeeded (--detach: takes part); 1: one, or a server, failed; 2: wrong usage or configuration:
# nothing was started, or every node that failed ended with 2; 130/143: stopped by SIGINT/SIGTERM.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
supervise run "$@"
