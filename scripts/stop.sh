#!/usr/bin/env bash
# Ends exactly the processes that scripts/run.sh started for this cluster file on this host: SIGTERM, and
# SIGKILL for those that still run after the grace period. The servers of backend kvstore come after the nodes,
# which need them until they have ended. It never ends a process by name, and is safe to run again. When it
# returns, the run.sh that waited for the nodes has written its last line (run.log of a detached run).
#
# usage: scripts/stop.sh CLUSTER.yaml [--grace SECONDS]
#
#   --grace   seconds that the nodes have to end by themselves, and then the servers (default 10)
#
# All messages go to standard error.
# Exit code 0: none of the processes runs any more; 1: a process could not be ended; 2: wrong usage, or
# nothing was started for the file, which does not exist or is no cluster file.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
supervise stop "$@"
