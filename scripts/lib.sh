# shellcheck shell=sh
# Sourced by the scripts beside it, from the top of the work tree. Says things, knows where things
# are kept, and exports what the product and its tests read from the environment. Installs nothing.

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$(printf '\033[1m') red=$(printf '\033[31m') yellow=$(printf '\033[33m') plain=$(printf '\033[0m')
else
    bold='' red='' yellow='' plain=''
fi

step() { printf '%s==> %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '    %s\n' "$*"; }
warn() { printf '%s    %s%s\n' "$yellow" "$*" "$plain" >&2; }
fail() {
    printf '%serror: %s%s\n' "$red" "$*" "$plain" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: both dotted numbers, e.g. 1.26.6.
at_least() {
    awk -v have="$1" -v want="$2" 'BEGIN {
        split(have, h, "."); split(want, w, ".")
        for (i = 1; i <= 3; i++) if (h[i] + 0 != w[i] + 0) exit !(h[i] + 0 > w[i] + 0)
    }'
}

sum_of() { sha256sum "$1" | cut -d ' ' -f 1; }

# Outside the work tree, so that a clean clone does not build OpenTofu again.
[ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || fail "set HOME or XDG_CACHE_HOME: the cache needs a place"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stackship
target=${CARGO_TARGET_DIR:-$PWD/target}

# tools/tofu/go.mod is the one place that names the OpenTofu version.
tofu_version=$(sed -n 's|^.*github.com/opentofu/opentofu v\([0-9][0-9.]*\).*|\1|p' tools/tofu/go.mod)
[ -n "$tofu_version" ] || fail "tools/tofu/go.mod names no OpenTofu version"

STACKSHIP_TOFU_MIRROR=${STACKSHIP_TOFU_MIRROR:-$cache/mirror}
STACKSHIP_TEST_PROVIDERS=${STACKSHIP_TEST_PROVIDERS:-$cache/providers/mirror}
STACKSHIP_BIN=${STACKSHIP_BIN:-$target/debug/stackship}
export STACKSHIP_TOFU_MIRROR STACKSHIP_TEST_PROVIDERS STACKSHIP_BIN

# Some machines name a CLI configuration that does not exist, and every tofu command then warns.
unset TF_CLI_CONFIG_FILE TF_CLI_ARGS TF_DATA_DIR TF_WORKSPACE TF_LOG
