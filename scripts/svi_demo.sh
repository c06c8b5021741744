#!/usr/bin/env bash
# Sets up, builds, and fits a Bayesian regression with dpwa-svi: in one process, then on a cluster of processes
# under each back end. Prints a table for each data set, and leaves tables, pictures and all files in
# runs/svi/TIME.
#
# usage: scripts/svi_demo.sh [--nodes 4] [--steps 2000] [--lr 0.02] [--seed 1] [--posterior mean-field|full]
#                            [--data engel|diabetes|synthetic]
#
#   --data   one data set; default engel and diabetes, which scripts/prepare_svi_data.py takes from packages of
#            the Python index into data/svi. When they cannot be fetched (offline): synthetic, and that is said
#
# Exit code 2: wrong usage; nothing was set up. 130/143: stopped by SIGINT/SIGTERM, together with the nodes.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

nodes=4 steps=2000 lr=0.02 seed=1 posterior=mean-field data=''
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --nodes | --steps | --lr | --seed | --posterior | --data) needs_value "$1" $#; only_once "$1" ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  case $1 in
    --nodes) nodes=$2 ;;
    --steps) steps=$2 ;;
    --lr) lr=$2 ;;
    --seed) seed=$2 ;;
    --posterior) posterior=$2 ;;
    --data) data=$2 ;;
  esac
  shift 2
done
[[ $nodes =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || usage_error "--nodes takes 1 to 64, not '$nodes'"
[[ $steps =~ ^[1-9][0-9]{0,8}$ ]] || usage_error "--steps takes a whole number above 0, not '$steps'"
[[ $lr =~ ^[0-9]*\.?[0-9]+(e-?[0-9]{1,2})?$ && ! $lr =~ ^[0.]+(e|$) ]] ||
  usage_error "--lr takes a number above 0, not '$lr'"
[[ $seed =~ ^[0-9]{1,19}$ ]] || usage_error "--seed takes a whole number of at most 19 digits, not '$seed'"
[[ $posterior =~ ^(mean-field|full)$ ]] || usage_error "--posterior takes mean-field or full, not '$posterior'"
[[ $data =~ ^(|engel|diabetes|synthetic)$ ]] ||
  usage_error "--data takes engel, diabetes or synthetic, not '$data'"

"$repository/scripts/setup.sh"
"$repository/scripts/build.sh" release --target dpwa_cli --target dpwa_svi
python=$venv/bin/python
export DPWA_TRAIN=$binaries/dpwa-svi

heading 'data'
sets=("${data:-engel}")
[[ -n $data ]] || sets+=(diabetes)
if [[ $data != synthetic ]] && ! (exec_python "$python" "$repository/scripts/prepare_svi_data.py" "$data_folder/svi"); then
  [[ -z $data ]] || die "no $data: scripts/prepare_svi_data.py needs the Python index"
  warn 'the data cannot be fetched (offline?): a synthetic set is used instead'
  sets=(synthetic)
fi

folder=$(new_run_folder svi)
end_jobs_at_exit "what there is: $folder"
port=$("$python" "$repository/scripts/lib/ports.py" $((nodes + 1)))  # of the nodes, and of one server

# fit DATA RUN TITLE NODES SETTINGS OPTION...: one run; SETTINGS: lines of the cluster file beside its nodes.
fit() {
  local set=$1 name=$2 title=$3 count=$4 settings=$5 index
  local run=$folder/$set/$name
  shift 5
  mkdir -p "$run"
  {
    printf 'cluster: svi\nnodes:\n'
    for ((index = 0; index < count; ++index)); do
      printf '  - {name: w%d, host: 127.0.0.1, port: %d, cores: [%d]}\n' $((index + 1)) $((port + index)) \
        $((index % $(nproc)))
    done
    printf '%s\n' "$settings"
  } >"$run/cluster.yaml"
  local progress_file=$run/w1.log  # read by run_logged
  run_logged "$set: $title" "svi-$name" "$repository/scripts/run.sh" "$run/cluster.yaml" --run-dir "$run" -- \
    --data "$set" --data-dir "$data_folder/svi" --steps "$steps" --lr "$lr" --seed "$seed" --posterior "$posterior" "$@"
}

for set in "${sets[@]}"; do
  heading "variational inference: $set, $nodes $([[ $nodes == 1 ]] && echo node || echo nodes), $posterior, seed $seed"
  fit "$set" one_process 'one process, all rows' 1 'backend: "null"'
  # Every back end that trains together. A new one is one more line here, and one in summarize_svi.py.
  fit "$set" collective 'collective' "$nodes" 'backend: collective'
  fit "$set" kvstore 'kvstore' "$nodes" "backend: kvstore
kvstore: {servers: [{name: s1, host: 127.0.0.1, port: $((port + nodes))}]}"
  fit "$set" gossip_parameters 'gossip in (m, log s)' "$nodes" 'backend: gossip' --exchange parameters
  fit "$set" gossip_natural 'gossip in natural parameters' "$nodes" 'backend: gossip' --exchange natural
done

heading 'result'
(exec_python "$python" "$repository/scripts/summarize_svi.py" "$folder")
ok "demo complete ($SECONDS s); tables and pictures are in $folder"
