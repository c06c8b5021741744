# shellcheck shell=bash disable=SC2034,SC2154  # names are shared between the files
# Finds missing system packages by looking for the files that the build will use, and installs them
# through apt.

boost_minimum=1.81
boost_minimum_number=108100  # BOOST_VERSION of 1.81.0

# include_folders: where headers are looked for, one a line.
include_folders() {
  local folder
  for folder in ${CMAKE_PREFIX_PATH//[:;]/ }; do printf '%s/include\n' "$folder"; done
  for folder in ${CPATH//:/ }; do printf '%s\n' "$folder"; done
  printf '%s\n' /usr/local/include /usr/include /usr/include/*-linux-gnu
}

# find_header NAME: prints the full path of the first match.
find_header() {
  local folder
  for folder in "${searched_folders[@]}"; do
    if [[ -e $folder/$1 ]]; then
      printf '%s\n' "$folder/$1"
      return 0
    fi
  done
  return 1
}

has_boost() {
  local header number
  header=$(find_header boost/version.hpp) || return 1
  number=$(awk '$1 == "#define" && $2 == "BOOST_VERSION" {print $3}' "$header")
  ((${number:-0} >= boost_minimum_number))
}

has_compiler() {
  local major
  major=$("${CXX:-c++}" -dumpversion 2>/dev/null | cut -d. -f1) || return 1
  # Clang has its own numbering; CMake judges it by the features that it lacks.
  "${CXX:-c++}" --version | grep -qi clang || ((${major:-0} >= 12))
}

has_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 {print $3}') || return 1
  version_at_least "${version:-0}" 3.22
}

has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }

# missing_packages: Debian's names of what is missing, one a line. Takes well under a second.
missing_packages() {
  local line
  CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-} CPATH=${CPATH:-}
  mapfile -t searched_folders < <(include_folders)
  has_compiler || echo g++
  has_cmake || echo cmake
  has_venv || echo python3-venv
  command -v ninja >/dev/null || echo ninja-build
  command -v openssl >/dev/null || echo openssl
  has_boost || echo libboost-dev
  command -v mpicxx >/dev/null || echo libopenmpi-dev
  command -v mpirun >/dev/null || echo openmpi-bin
  while read -r line; do
    find_header "${line#* }" >/dev/null || echo "${line%% *}"
  done <<'END'
libyaml-cpp-dev yaml-cpp/yaml.h
libspdlog-dev spdlog/spdlog.h
doctest-dev doctest/doctest.h
libcli11-dev CLI/CLI.hpp
libssl-dev openssl/ssl.h
nlohmann-json3-dev nlohmann/json.hpp
libisal-dev isa-l.h
zlib1g-dev zlib.h
END
}

# candidate_version PACKAGE: the version that apt would install, empty when there is none.
candidate_version() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" {print $2}'; }

# boost_package: the package whose headers are new enough: the default, else the newest numbered one.
boost_package() {
  local name version
  if version_at_least "$(candidate_version libboost-dev | sed 's/^[0-9]*://')" "$boost_minimum"; then
    echo libboost-dev
    return 0
  fi
  while read -r name; do
    version=${name#libboost}
    if version_at_least "${version%-dev}" "$boost_minimum" && [[ -n $(candidate_version "$name") ]]; then
      echo "$name"
      return 0
    fi
  done < <(apt-cache pkgnames libboost1. | grep -E '^libboost1\.[0-9]+-dev$' | sort -rV)
  return 1
}

# as_root COMMAND...: with sudo only when this is not root already.
as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=120 "$@"
}

# ensure_system_packages: installs missing packages, or lists them and fails.
ensure_system_packages() {
  local missing boost index
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    ok 'system packages: all there'
    return 0
  fi
  say "missing: ${missing[*]}"
  if ! command -v apt-get >/dev/null; then
    fail "no apt on this system: install these (Debian's names; Boost >= $boost_minimum, g++ >= 12, CMake >= 3.22) and run this again"
    return 1
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      fail 'installing them needs root, and there is no sudo: install them as root and run this again'
      return 1
    }
    say 'sudo is used for apt'
    sudo -v || return 1
  fi
  command -v ccache >/dev/null || missing+=(ccache)
  run_logged 'apt-get update' apt-update as_root apt-get update || return 1
  for index in "${!missing[@]}"; do
    [[ ${missing[index]} == libboost-dev ]] || continue
    boost=$(boost_package) || {
      fail "this system's packages hold no Boost >= $boost_minimum: install its headers and run this again"
      return 1
    }
    missing[index]=$boost
  done
  run_logged "apt-get install ${missing[*]}" apt-install apt_install "${missing[@]}" || return 1
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} > 0)); then
    fail "still missing after the installation: ${missing[*]}"
    return 1
  fi
}
