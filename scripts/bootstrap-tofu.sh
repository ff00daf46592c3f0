# shellcheck shell=sh
# Sourced by scripts/bootstrap: the real OpenTofu, of exactly the version that tools/tofu/go.mod
# names, in a cache outside the work tree, and from there in the mirror StackShip reads.
#
#   $cache/tofu/VERSION/tofu           the binary
#   $cache/tofu/VERSION/tofu.sha256    its sum when it was put there: notices later changes
#   $cache/tofu/VERSION/tofu.origin    how it was obtained, one line
#   MIRROR/VERSION/tofu, SHA256SUMS    what StackShip reads
#
# A `terraform` or another `tofu` found on PATH is never used.

tofu_home=$cache/tofu/$tofu_version
tofu_cached=$tofu_home/tofu
tofu_go_minimum=$(sed -n 's/^go \([0-9.]*\)$/\1/p' tools/tofu/go.mod)
tofu_releases=https://github.com/opentofu/opentofu/releases/download
tofu_key=https://get.opentofu.org/opentofu.asc
# The key itself may come from anywhere: only this fingerprint is trusted.
tofu_key_fingerprint=E3E6E43D84CB852EADB0051D0C0AF313E5FD9F80

tofu_reports_version() {
    env -i CHECKPOINT_DISABLE=1 HOME=/nonexistent PATH=/usr/bin:/bin "$1" version 2>/dev/null |
        sed -n '1s/^OpenTofu v//p'
}

# tofu_fits FILE: the right version, and the sum recorded beside it. Leaves the reason in $unfit.
# The sum comes first: a file that was changed is not run.
tofu_fits() {
    if [ ! -e "$1" ]; then
        unfit="is not there"
    elif [ ! -f "$1.sha256" ]; then
        unfit="has no recorded sum beside it ($1.sha256)"
    elif [ "$(cut -d ' ' -f 1 "$1.sha256")" != "$(sum_of "$1")" ]; then
        unfit="does not have the SHA-256 recorded in $1.sha256"
    elif [ "$(tofu_reports_version "$1")" != "$tofu_version" ]; then
        unfit="does not say it is version $tofu_version"
    else
        return 0
    fi
    return 1
}

# keep_tofu FILE HOW: FILE is on the cache's file system, so each rename is atomic. The binary goes
# last: interrupted before it, the next run sees a sum that does not match and starts over.
keep_tofu() {
    version=$(tofu_reports_version "$1")
    [ "$version" = "$tofu_version" ] ||
        fail "$2 gave version '${version:-unknown}' instead of $tofu_version"
    printf '%s  tofu\n' "$(sum_of "$1")" >"$1.sha256"
    printf '%s\n' "$2" >"$1.origin"
    mv -f "$1.sha256" "$tofu_cached.sha256"
    mv -f "$1.origin" "$tofu_cached.origin"
    mv -f "$1" "$tofu_cached"
}

# fetch URL FILE SECONDS
fetch() {
    if have curl; then
        curl --silent --fail --location --proto '=https' --proto-redir '=https' --connect-timeout 5 --max-time "$3" -o "$2" "$1"
    else
        wget --quiet --https-only --tries=1 --timeout=5 -O "$2" "$1"
    fi
}

# openpgp_signed_by FINGERPRINT KEY SIGNATURE FILE, with a keyring of this one key.
openpgp_signed_by() (
    ring=$(dirname "$2")
    awk '/^-----END/ || /^=/ { exit } body { print } /^\r?$/ { body = 1 }' "$2" | base64 -d >"$ring/key.gpg" || exit 1
    if have gpgv; then
        verify="gpgv"
    else
        verify="gpg --batch --no-default-keyring --trust-model always --verify"
    fi
    # shellcheck disable=SC2086 # a command and its words
    $verify --homedir "$ring" --keyring "$ring/key.gpg" --status-fd 1 "$3" "$4" >"$ring/status" 2>/dev/null || exit 1
    # GOODSIG leaves out expired and revoked keys. The last word of VALIDSIG is the primary key.
    grep -q '^\[GNUPG:\] GOODSIG ' "$ring/status" &&
        grep -q "^\[GNUPG:\] VALIDSIG .* $1\$" "$ring/status"
)

# download_tofu WORK: the published release, if it can be had and verified. Every refusal says why.
download_tofu() {
    if ! platform=$(go_platform); then
        say "no release download: unknown platform $(uname -s)-$(uname -m)"
        return 1
    fi
    if ! have curl && ! have wget; then
        say "no release download: neither curl nor wget is here"
        return 1
    fi
    if ! have gpgv && ! have gpg; then
        say "no release download: nothing here can verify its signature (gpgv or gpg)"
        return 1
    fi
    base=$tofu_releases/v$tofu_version
    sums=tofu_${tofu_version}_SHA256SUMS
    archive=tofu_${tofu_version}_$platform.tar.gz
    if ! fetch "$base/$sums" "$1/$sums" 20 || ! fetch "$base/$sums.gpgsig" "$1/$sums.gpgsig" 20 ||
        ! fetch "$tofu_key" "$1/opentofu.asc" 20; then
        say "no release download: the release host cannot be reached from here"
        return 1
    fi
    if ! openpgp_signed_by "$tofu_key_fingerprint" "$1/opentofu.asc" "$1/$sums.gpgsig" "$1/$sums"; then
        warn "release download refused: its sums are not signed by the key $tofu_key_fingerprint"
        return 1
    fi
    say "downloading $archive"
    if ! fetch "$base/$archive" "$1/$archive" 600; then
        say "no release download: $archive could not be fetched"
        return 1
    fi
    if ! (cd "$1" && grep "^[0-9a-f]\{64\}  $archive\$" "$sums" | sha256sum --check --status); then
        warn "release download refused: $archive does not have the signed sum"
        return 1
    fi
    tar -xzf "$1/$archive" -C "$1" tofu && chmod 0755 "$1/tofu" || return 1
    keep_tofu "$1/tofu" "release v$tofu_version, sums signed by $tofu_key_fingerprint"
}

# build_tofu WORK. Not `go tool tofu`: it recompiles everything and takes no -ldflags.
build_tofu() {
    if ! find_go "$tofu_go_minimum"; then
        say "no build: no Go $tofu_go_minimum, no older Go that could fetch it, no usable Python to get one"
        return 1
    fi
    say "building with Go from the published module: several minutes, once"
    (
        cd tools/tofu || exit
        go_build "$1/tofu" "-X github.com/opentofu/opentofu/version.dev=no" github.com/opentofu/opentofu/cmd/tofu
    ) 2>&1 | go_progress
    if [ ! -x "$1/tofu" ]; then
        say "no build: go build failed"
        return 1
    fi
    keep_tofu "$1/tofu" "built from module github.com/opentofu/opentofu v$tofu_version by $(cd tools/tofu && GOTOOLCHAIN=$go_toolchain "$go" env GOVERSION)"
}

# fill_mirror FILE, which tofu_fits found fit. A copy, not a link: a later change to FILE cannot reach
# the mirror.
fill_mirror() {
    home=$STACKSHIP_TOFU_MIRROR/$tofu_version
    line="$(cut -d ' ' -f 1 "$1.sha256")  tofu"
    if [ -f "$home/tofu" ] && [ "$(cat "$home/SHA256SUMS" 2>/dev/null)" = "$line" ] &&
        [ "$(sum_of "$home/tofu")  tofu" = "$line" ]; then
        say "mirror: $STACKSHIP_TOFU_MIRROR"
        return
    fi
    mkdir -p "$home"
    cp --reflink=auto "$1" "$home/tofu.tmp"
    chmod 0755 "$home/tofu.tmp"
    mv -f "$home/tofu.tmp" "$home/tofu"
    printf '%s\n' "$line" >"$home/SHA256SUMS.tmp"
    mv -f "$home/SHA256SUMS.tmp" "$home/SHA256SUMS"
    say "mirror: $STACKSHIP_TOFU_MIRROR, filled"
}

obtain_tofu() {
    mkdir -p "$tofu_home"
    work=$(mktemp -d "$tofu_home/work.XXXXXX")
    trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
    download_tofu "$work" || build_tofu "$work" || fail "OpenTofu $tofu_version could not be obtained. Any one of these is enough:
  1. set STACKSHIP_TOFU to a tofu $tofu_version, with its SHA-256 recorded beside it: sha256sum tofu >tofu.sha256
  2. make $tofu_releases reachable, with curl or wget and gpgv or gpg
  3. put Go $tofu_go_minimum (or any Go from $go_toolchain_minimum on) or Python 3 with venv on PATH, with their package indexes reachable"
}

ensure_tofu() {
    if [ -n "${STACKSHIP_TOFU:-}" ]; then
        tofu_fits "$STACKSHIP_TOFU" || fail "STACKSHIP_TOFU: $STACKSHIP_TOFU $unfit"
        step "OpenTofu: $tofu_version, $STACKSHIP_TOFU"
        fill_mirror "$STACKSHIP_TOFU"
        return
    fi
    if ! tofu_fits "$tofu_cached"; then
        step "OpenTofu: $tofu_version wanted, $tofu_cached $unfit"
        obtain_tofu
        tofu_fits "$tofu_cached" || fail "$tofu_cached was just made and $unfit"
    fi
    step "OpenTofu: $tofu_version, $(cat "$tofu_cached.origin")"
    fill_mirror "$tofu_cached"
}
