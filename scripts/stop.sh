#!/usr/bin/env bash
# Ends exactly the processes that scripts/run.sh started for this cluster file on this host: SIGTERM, and
# SIGKILL for those that still run after the grace period. It never ends a process by name, and is safe to run
# again. When it returns, the run.sh that waited for the nodes has written its last line (run.log of a detached
# run).
#
# usage: scripts/stop.sh CLUSTER.yaml [--grace SECONDS]
#
#   --grace   time that the nodes have to end by themselves (default 10)
#
# Exit code 0: none of the processes runs any more; 1: a process could not be ended; 2: wrong usage, or the
# file does not exist and nothing was started for it.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/processes.sh
source "$repository/scripts/lib/processes.sh"
trap '' PIPE  # a reader of the messages that goes away does not keep the nodes running

cluster=''
grace=10
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --grace)
      needs_value "$1" $#
      only_once "$1"
      [[ $2 =~ ^[0-9]{1,6}$ ]] || usage_error "--grace takes whole seconds, not '$2'"
      grace=$((10#$2))
      shift
      ;;
    -*) usage_error "unknown option '$1'" ;;
    *) [[ -z $cluster ]] || usage_error "one cluster file, not '$1' as well"; cluster=$1 ;;
  esac
  shift
done
[[ -n $cluster ]] || usage_error 'the cluster file is missing'

state=$(state_folder "$cluster")
if [[ ! -d $state ]]; then
  [[ -e $cluster ]] || usage_error "there is no file $cluster, and nothing that was started for it"
  ok 'nothing of it runs'
  exit 0
fi
mapfile -t nodes < <(recorded_nodes "$state")
mapfile -t supervising < <(supervisors "$state")
stop_nodes "$state" "$grace" "${nodes[@]}"
await_supervisors 10 "${supervising[@]}" ||
  warn "run.sh (pid ${supervising[*]%% *}) has not ended within 10 s: its log may not be whole"
forget_nodes "$state" "${nodes[@]}"
