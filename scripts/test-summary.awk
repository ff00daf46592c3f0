# Adds up what `cargo test` printed. Exits 1 on a failure, and when nothing ran.
# A program that started and gave no result was killed or aborted: it counts as one failure.

function close_program() {
    if (program == "") return
    dead[++dead_count] = program
    failed++
    program = ""
}

/^ +Running / || /^ +Doc-tests / {
    close_program()
    program = $0
    sub(/^ +/, "", program)
}

/^test .* \.\.\. FAILED$/ {
    name = $0
    sub(/^test /, "", name)
    sub(/ \.\.\. FAILED$/, "", name)
    names[++name_count] = name
}

/^test result: (ok|FAILED)\. [0-9]+ passed; [0-9]+ failed; [0-9]+ ignored; / {
    program = ""
    for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^failed/) failed += $(i - 1)
        if ($i ~ /^ignored/) ignored += $(i - 1)
    }
}

END {
    close_program()
    print ""
    for (i = 1; i <= name_count; i++) print "failed: " names[i]
    for (i = 1; i <= dead_count; i++) print "ended without a result: " dead[i]
    if (ignored) print ignored " ignored"
    if (passed + failed == 0) print "no test ran"
    if (status && !failed) print "cargo test ended with status " status
    printf "%d passed, %d failed\n", passed, failed
    exit (failed || status || passed == 0)
}
