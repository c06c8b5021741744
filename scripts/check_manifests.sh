#!/usr/bin/env bash
# Checks the manifests of samples/kubernetes against the schemas of Kubernetes and of Kubeflow Trainer, which it installs
# into an environment of its own, build/manifests (120 MB).
#
# usage: scripts/check_manifests.sh
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

[[ ${1:-} != --help && ${1:-} != -h ]] || { show_help; exit 0; }
(($# == 0)) || usage_error "unknown argument '$1'"

environment=$repository/build/manifests
[[ -x $environment/bin/pip ]] || python3 -m venv "$environment"
run_logged 'installing the schemas' install-schemas "$environment/bin/pip" install \
  kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0 PyYAML==6.0.3
exec "$environment/bin/python" "$repository/test/scripts/manifests_test.py"
