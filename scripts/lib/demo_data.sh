# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# What the demo trains on. choose_data sets data_arguments (of dpwa-train), data_source (for people),
# default_epochs and eval_every (steps between evaluations).

# has_mnist FOLDER: all four IDX files, plain or .gz, there or in its folder mnist.
has_mnist() {
  local stem file found
  for stem in {train,t10k}-{images-idx3,labels-idx1}-ubyte; do
    found=no
    for file in "$1"/{,mnist/}"$stem"{,.gz}; do
      [[ ! -f $file ]] || found=yes
    done
    [[ $found == yes ]] || return 1
  done
}

use_synthetic() {
  data_arguments=(--data synthetic)
  data_source='synthetic patterns'
  default_epochs=3
  eval_every=50
}

use_mnist() {
  data_arguments=(--data mnist --data-dir "$1")
  data_source=$2
  default_epochs=$3
  eval_every=$4
}

# choose_data [WANTED]: WANTED is mnist, synthetic, or empty for the best there is.
choose_data() {
  local digits=$repository/data/mnist5k
  if [[ $1 == synthetic ]]; then
    use_synthetic
  elif [[ -n ${DPWA_DATA_DIR:-} ]]; then
    has_mnist "$DPWA_DATA_DIR" || usage_error "DPWA_DATA_DIR: the four MNIST files (train-images-idx3-ubyte and so on, plain or .gz) are not in $DPWA_DATA_DIR"
    say "DPWA_DATA_DIR: $DPWA_DATA_DIR"
    use_mnist "$(realpath -- "$DPWA_DATA_DIR")" MNIST 3 100
  elif "$venv/bin/python" "$repository/scripts/prepare_mnist.py" "$digits"; then
    use_mnist "$digits" '5,000 digits of MNIST' 20 50
  elif [[ $1 == mnist ]]; then
    die 'no MNIST: set DPWA_DATA_DIR to a folder with its files'
  else
    use_synthetic
    warn 'the digits cannot be fetched (offline?): a small synthetic set is used instead'
  fi
  ok "data: $data_source"
}
