# shellcheck shell=sh
# Sourced by scripts/bootstrap: programs of the operating system, and the Rust toolchain.

postgres_minimum=14

# The order in which StackShip itself looks. pg_config can be there without a server.
postgres_bin() {
    for bin in "${STACKSHIP_PG_BIN:-}" "$(pg_config --bindir 2>/dev/null || true)" \
        $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t / -k 5,5nr); do
        [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] || continue
        version=$("$bin/postgres" --version | sed -n 's/^[^0-9]*\([0-9][0-9]*\).*/\1/p')
        at_least "${version:-0}" "$postgres_minimum" && echo "$bin" && return
    done
    return 1
}

is_there() {
    case "$1" in
    bubblewrap) have bwrap ;;
    postgresql) postgres_bin >/dev/null ;;
    ca-certificates) [ -s /etc/ssl/certs/ca-certificates.crt ] || [ -s /etc/pki/tls/certs/ca-bundle.crt ] ;;
    *) have "$1" ;;
    esac
}

# A thing we look for and the Debian packages that bring it.
apt_names() {
    case "$1" in
    cc) echo "gcc libc6-dev" ;;
    *) echo "$1" ;;
    esac
}

missing_of() {
    for thing in "$@"; do
        is_there "$thing" || printf '%s ' "$thing"
    done
}

# Least power first: nobody is asked for a password where none is needed, and nobody is asked at all
# where no one can answer.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    elif have sudo && [ -t 0 ] && [ -t 2 ]; then
        say "sudo $* (sudo may ask for your password; Ctrl-C stops)"
        sudo "$@"
    else
        return 1
    fi
}

# ensure_packages "THING THING ..."
ensure_packages() {
    # shellcheck disable=SC2086 # a list of words
    missing=$(missing_of $1)
    if [ -z "$missing" ]; then
        step "Programs: all there ($1)"
        return
    fi
    names=''
    for thing in $missing; do
        names="$names $(apt_names "$thing")"
    done
    have apt-get || fail "missing: $missing
This script installs with apt-get only, and there is none here. Install the Debian packages$names
under the names your system has for them (PostgreSQL $postgres_minimum or newer), then run this again."
    step "Programs: installing$names"
    by_hand="apt-get update && apt-get install -y --no-install-recommends$names"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 update ||
        fail "could not become root, or apt-get failed. Run this as root, then start again:
  $by_hand"
    # shellcheck disable=SC2086 # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 \
        install -y --no-install-recommends --no-upgrade $names ||
        fail "apt-get failed. Run this as root, then start again:
  $by_hand"
    # shellcheck disable=SC2086 # a list of words
    missing=$(missing_of $missing)
    [ -z "$missing" ] || fail "apt-get reported success, but these are still missing: $missing"
}

check_rust() {
    if ! have cargo || ! have rustc; then
        fail "no Rust toolchain: cargo and rustc are not on PATH.
Install one with rustup (https://rustup.rs), open a new shell, then run this again."
    fi
    minimum=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    version=$(rustc --version | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
    at_least "${version:-0}" "$minimum" ||
        fail "Rust ${version:-of an unknown version} is too old: StackShip needs $minimum or newer (rustup update)."
    step "Rust: $version"
}
