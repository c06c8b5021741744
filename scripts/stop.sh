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
code=0 found=no
# end_all NODE...: ends those that run.
end_all() {
  [[ -n $(running_nodes "$state" "$@") ]] || return 0
  found=yes
  stop_nodes "$state" "$grace" "$@" || code=1
}

exec {lock}>"$(dirname -- "$state")/lock"
flock -w 5 "$lock" || true  # a run.sh that starts nodes is done within that time
mapfile -t nodes < <(recorded_as "$state" node)
mapfile -t servers < <(recorded_as "$state" server)
mapfile -t supervising < <(supervisors "$state")
((${#servers[@]} == 0)) || become_ender "$state"  # else run.sh would signal them as well, once the nodes have ended
exec {lock}>&-
end_all "${nodes[@]}"
end_all "${servers[@]}"
[[ $found == yes ]] || ok 'nothing of it runs'
((code == 0)) || exit "$code"
await_supervisors 10 "${supervising[@]}" ||
  warn "run.sh (pid ${supervising[*]%% *}) has not ended within 10 s: its log may not be whole"
forget_nodes "$state" "${nodes[@]}" "${servers[@]}"
