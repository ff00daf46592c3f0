# shellcheck shell=sh
# Sourced by scripts/bootstrap: the providers that tests use, built from tools/providers, in a cache
# outside the work tree that is laid out as a mirror of OpenTofu's default provider host.
#
#   MIRROR/HOST/stackship/fixture/VERSION/PLATFORM/…    unpacked: a run sees the mirror's own file
#   MIRROR/HOST/hashicorp/time/…_PLATFORM.zip           packed: a run gets a copy
#   $cache/providers/NAME.built                         what it was built from, and its sum
#
# The layouts differ on purpose: OpenTofu treats them differently, and runs must work with both.

providers_module=tools/providers
fixture_versions="1.0.0 1.1.0"
time_version=$(sed -n 's|^.*hashicorp/terraform-provider-time v\([0-9.]*\).*|\1|p' $providers_module/go.mod)

# sources_of PATH...: one sum for everything a build reads.
sources_of() { (cd "$providers_module" && find "$@" -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d ' ' -f 1); }

# is_built NAME FILE SOURCES: FILE is what was built from these sources, unchanged since.
is_built() {
    [ -f "$2" ] && [ "$(cat "$cache/providers/$1.built" 2>/dev/null)" = "$3 $(sum_of "$2")" ]
}

# keep_provider NAME BUILT FILE SOURCES: on one file system, so each rename is atomic. The record goes
# last: interrupted before it, the next run builds again.
keep_provider() {
    mkdir -p "$(dirname "$3")"
    printf '%s %s\n' "$4" "$(sum_of "$2")" >"$2.built"
    mv -f "$2" "$3"
    mv -f "$2.built" "$cache/providers/$1.built"
}

build_provider() {
    (cd "$providers_module" && go_build "$@") 2>&1 | go_progress
    [ -x "$1" ] || fail "go build of $3 failed"
}

# A subshell: its trap is not the one that removes what obtain_tofu leaves.
ensure_providers() (
    platform=$(go_platform) || fail "no providers for tests: unknown platform $(uname -s)-$(uname -m)"
    host=$STACKSHIP_TEST_PROVIDERS/registry.opentofu.org
    fixture_sources=$(sources_of go.mod go.sum fixture)
    time_sources=$(sources_of go.mod go.sum pack)
    time_file=$host/hashicorp/time/terraform-provider-time_${time_version}_$platform.zip
    missing=''
    for version in $fixture_versions; do
        fixture_file=$host/stackship/fixture/$version/$platform/terraform-provider-fixture_v$version
        is_built "fixture_$version" "$fixture_file" "$fixture_sources" || missing="$missing fixture_$version"
    done
    is_built time "$time_file" "$time_sources" || missing="$missing time"
    if [ -z "$missing" ]; then
        step "Providers for tests: fixture ($fixture_versions), time ($time_version)"
        return
    fi
    step "Providers for tests: building$missing, two minutes when nothing is in Go's cache"
    started=$(date +%s)
    find_go "$(go_minimum $providers_module)" ||
        fail "no Go $(go_minimum $providers_module), none from $go_toolchain_minimum on that could fetch it, no usable Python to get one"
    mkdir -p "$cache/providers"
    work=$(mktemp -d "$cache/providers/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    for name in $missing; do
        case "$name" in
        fixture_*) build_fixture "${name#fixture_}" ;;
        time) build_time ;;
        esac
        say "$name, after $(($(date +%s) - started)) s"
    done
)

build_fixture() {
    build_provider "$work/fixture" "-X main.version=$1" ./fixture
    keep_provider "fixture_$1" "$work/fixture" \
        "$host/stackship/fixture/$1/$platform/terraform-provider-fixture_v$1" "$fixture_sources"
}

build_time() {
    inside=terraform-provider-time_v${time_version}_x5
    build_provider "$work/$inside" "" github.com/hashicorp/terraform-provider-time
    build_provider "$work/pack" "" ./pack
    "$work/pack" "$work/$inside" "$inside" "$work/time.zip"
    keep_provider time "$work/time.zip" "$time_file" "$time_sources"
}
