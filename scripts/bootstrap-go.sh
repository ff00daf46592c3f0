# shellcheck shell=sh
# Sourced by scripts/bootstrap: a Go that builds what the modules in tools/ name.

go_toolchain_minimum=1.21.0 # the first Go that can fetch another Go

# What Go and OpenTofu call this machine.
go_platform() {
    case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo linux_amd64 ;;
    Linux-aarch64) echo linux_arm64 ;;
    *) return 1 ;;
    esac
}

# go_minimum DIRECTORY: the `go` line of the module there.
go_minimum() { sed -n 's/^go \([0-9.]*\)$/\1/p' "$1/go.mod"; }

# find_go MINIMUM: leaves a Go command in $go and what to set GOTOOLCHAIN to in $go_toolchain.
find_go() {
    if have go && fits_go go "$1"; then
        return
    fi
    say "getting Go as a Python wheel"
    venv=$(venv_with go) || return 1
    fits_go "$venv/bin/go" "$1"
}

# fits_go COMMAND MINIMUM: new enough, or able to fetch one that is.
fits_go() {
    version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed 's/^go//')
    if at_least "$version" "$2"; then
        go=$1 go_toolchain=local
    elif at_least "$version" "$go_toolchain_minimum"; then
        go=$1 go_toolchain=go$2
    else
        say "$1 is ${version:-of an unknown version}, older than $2 and too old to fetch a newer Go"
        return 1
    fi
}

# go_build FILE LINKER-FLAGS PACKAGE, in the directory of the module, after find_go. CGO off, as
# releases are built: one static file that also runs in a sandbox without the host's libraries.
go_build() {
    GOTOOLCHAIN=$go_toolchain GOFLAGS="-buildvcs=false -mod=readonly" GOWORK=off CGO_ENABLED=0 \
        nice -n 5 "$go" build -v -trimpath -ldflags "-s -w $2" -o "$1" "$3"
}

# Go says nothing for minutes. One line for every 250 packages shows that it lives; lines with a
# space are messages and pass.
go_progress() {
    awk '/[[:space:]]/ { print; fflush(); next } ++n % 250 == 0 { print "    " n " packages compiled"; fflush() }'
}
