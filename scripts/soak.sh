#!/usr/bin/env bash
# Runs simulated clusters (test/world) on schedules of faults that nobody has seen, for a time. Prints each schedule that
# breaks a promise, shortened, with its seed; exit code 1 if there was one.
#
# usage: scripts/soak.sh [--minutes 10] [--jobs N] [--seed S]
#
#   --minutes   how long
#   --jobs      programs that run at once (the number of processors)
#   --seed      the first seed; the time by default
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

minutes=10 jobs=$(nproc) seed=$(date +%s)000000
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --minutes) needs_value "$1" $#; minutes=$2; shift ;;
    --jobs) needs_value "$1" $#; jobs=$2; shift ;;
    --seed) needs_value "$1" $#; seed=$2; shift ;;
    *) usage_error "unknown option '$1'" ;;
  esac
  shift
done
for number in "--minutes=$minutes" "--jobs=$jobs" "--seed=$seed"; do
  [[ ${number#*=} =~ ^[1-9][0-9]{0,17}$ ]] || usage_error "${number%%=*} takes a whole number above 0, not '${number#*=}'"
done

"$repository/scripts/build.sh" release >&2
program=$repository/build/release/test/world/dpwa_world_tests
seeds=200  # of one run: half a minute
until=$((SECONDS + 60 * minutes))

# Runs seeds from $1 on, every $jobs-th run of them, until time is up. Its last line: how many.
soak() {
  local first=$1 done=0 failed=0 report
  while ((SECONDS < until)); do
    if report=$(DPWA_WORLD_SEED=$first DPWA_WORLD_SEEDS=$seeds "$program" --no-version --source-file='*test/world/*' 2>&1); then
      done=$((done + seeds))
      ((SECONDS % 30 >= 10)) || say "$done schedules, up to seed $((first + seeds - 1))"
    else
      failed=1
      printf '%s\n' "$report"
    fi
    first=$((first + jobs * seeds))
  done
  echo "$done schedules held"
  return "$failed"
}

heading "simulated clusters for $minutes min, from seed $seed"
end_jobs_at_exit 'promises that were broken until now are above'
pids=()
set -m  # a group each, which ends with this script
for ((job = 0; job < jobs; ++job)); do
  soak $((seed + job * seeds)) &
  pids+=($!)
done
set +m
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=1; done
((code == 0)) && ok 'every promise held' || fail 'a promise was broken: the schedules are above'
exit "$code"
