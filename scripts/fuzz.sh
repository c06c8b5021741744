#!/usr/bin/env bash
# Builds the fuzzers of test/fuzz in the preset "asan", with clang's libFuzzer under AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs each for a bounded time on its checked-in corpus. Ends with a
# table of executions; an input that breaks a fuzzer is kept in build/fuzz/findings, and the exit
# code is 1. The corpus of a target is test/fuzz/corpus/TARGET.tar, and the files of
# test/fuzz/corpus/TARGET/, if there is one: inputs that once broke the target.
#
# usage: scripts/fuzz.sh [--seconds 60] [--jobs 2] [--grow] [TARGET]...
#
#   --seconds   time of each target
#   --jobs      targets that run at once
#   --grow      adds what was found to reach new code to the archives; one to which nothing is added keeps its bytes
#   TARGET      frame_decoder, handshake, messages, link_greeting, cluster_file, key_file, store_snapshot,
#               store_engines, store_memory, checkpoint, idx; all when none is given
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/corpus.sh
source "$repository/scripts/lib/corpus.sh"

all=(frame_decoder handshake messages link_greeting cluster_file key_file store_snapshot store_engines store_memory
  checkpoint idx)
seconds=60 jobs=2 grow=''
targets=()
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --seconds) needs_value "$1" $#; seconds=$2; shift ;;
    --jobs) needs_value "$1" $#; jobs=$2; shift ;;
    --grow) grow=yes ;;
    -*) usage_error "unknown option '$1'" ;;
    *) [[ " ${all[*]} " == *" $1 "* ]] || usage_error "no target '$1'; accepted: ${all[*]}"; targets+=("$1") ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || usage_error "--seconds takes a whole number above 0, not '$seconds'"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs takes a whole number above 0, not '$jobs'"
((${#targets[@]} > 0)) || targets=("${all[@]}")

"$repository/scripts/setup.sh"
build_options=()
for target in "${targets[@]}"; do build_options+=(--target "dpwa_fuzz_$target"); done
"$repository/scripts/build.sh" asan "${build_options[@]}"
programs=$repository/build/asan/fuzz

folder=$repository/build/fuzz
heading "fuzz: ${#targets[@]} target(s), $seconds s each"
findings=$folder/findings
mkdir -p "$findings"

corpora=$repository/test/fuzz/corpus  # checked in; the build unpacks its archives into $programs/corpus

# fuzz TARGET: one bounded run; its last word is in TARGET.log.
fuzz() {
  local found=$folder/corpus/$1 regressions=()
  mkdir -p "$found"
  if [[ -d $corpora/$1 ]]; then regressions=("$corpora/$1"); fi
  # A yaml-cpp exception allocates; its leaks are looked for at the end of the run only.
  "$programs/dpwa_fuzz_$1" "$found" "$programs/corpus/$1" "${regressions[@]}" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -artifact_prefix="$findings/$1-" \
    >"$folder/$1.log" 2>&1
}

# grow TARGET: into a copy of the whole corpus, so that nothing is added that an input of it reaches.
grow() {
  local whole=$folder/grown/$1 input
  unpack_corpus "$corpora/$1.tar" "$whole"
  if [[ -d $corpora/$1 ]]; then cp -- "$corpora/$1"/* "$whole"; fi
  "$programs/dpwa_fuzz_$1" -merge=1 -max_len=600 "$whole" "$folder/corpus/$1" >"$folder/$1-merge.log" 2>&1
  for input in "$corpora/$1"/*; do rm -f -- "$whole/${input##*/}"; done
  pack_corpus "$whole" "$corpora/$1.tar"
}

failed=()
declare -A code
for ((i = 0; i < ${#targets[@]}; i += jobs)); do
  pids=()
  for target in "${targets[@]:i:jobs}"; do
    say "$target for $seconds s …"
    fuzz "$target" &
    pids+=("$target:$!")
  done
  for entry in "${pids[@]}"; do
    code[${entry%%:*}]=0
    wait "${entry##*:}" || code[${entry%%:*}]=$?
  done
done

printf '%-15s %14s %10s  %s\n' target executions 'per second' result
for target in "${targets[@]}"; do
  statistic() { sed -n "s/^stat::$1: *//p" "$folder/$target.log" | tail -n 1; }
  result=ok
  if ((code[$target] != 0)); then
    result="FAILED: $(fit "$(grep -m 1 -E 'Assertion|ERROR|SUMMARY|panic|what\(\)' "$folder/$target.log")" 90)"
    failed+=("$target")
  fi
  printf '%-15s %14s %10s  %s\n' "$target" "$(statistic number_of_executed_units)" \
    "$(statistic average_exec_per_sec)" "$result"
  if [[ -n $grow && $result == ok ]]; then grow "$target"; fi
done
if ((${#failed[@]} > 0)); then
  die "broken: ${failed[*]}; the inputs are in $findings, the logs in $folder"
fi
ok "nothing found in $seconds s each"
