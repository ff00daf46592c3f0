use std::time::Duration;

use stackship_sandbox::EndReason;

use crate::support::{run, shell, spec};

#[tokio::test]
async fn a_fork_bomb_stops_at_the_limit_and_is_named() {
    let script = "perl -e 'my $n = 0; while (defined(my $p = fork)) { if (!$p) { sleep 1000 } $n++ } \
                  print \"$n\\n\"; exit 1'";
    let ran = run(spec(vec![shell("one", script)])).await;
    assert_eq!(ran.outcome.reason, EndReason::Pids, "{}", ran.stderr);
    let made: u32 = ran.stdout.trim().parse().unwrap();
    assert!((30..64).contains(&made), "{made}");
    assert!(ran.outcome.pids_refusals > 0);
}

#[tokio::test]
async fn a_memory_bomb_is_killed_and_named() {
    let mut spec = spec(vec![shell(
        "one",
        "exec perl -e '$x .= \"x\" x (1 << 24) while 1'",
    )]);
    spec.limits.memory_bytes = 192 << 20;
    let ran = run(spec).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::Oom,
        "{:?}",
        ran.outcome.steps
    );
    assert!(ran.outcome.oom_kills > 0);
    assert!(ran.outcome.peak_memory_bytes.unwrap() <= 192 << 20);
}

#[tokio::test]
async fn files_without_end_are_bounded_by_memory() {
    let script =
        "exec perl -e 'for (my $n = 0; ; $n++) { open(my $f, \">\", \"f$n\") or die \"$!\" }'";
    let mut spec = spec(vec![shell("one", script)]);
    spec.limits.memory_bytes = 64 << 20;
    spec.limits.workspace_bytes = 32 << 20;
    let ran = run(spec).await;
    let bounded = match &ran.outcome.reason {
        EndReason::Oom => true,
        EndReason::StepFailed { .. } => ran.stderr.contains("No space left"),
        _ => false,
    };
    assert!(bounded, "{:?} {}", ran.outcome.reason, ran.stderr);
}

#[tokio::test]
async fn busy_loops_get_no_more_processor_time_than_the_limit() {
    let mut spec = spec(vec![shell(
        "one",
        "for i in 1 2 3 4; do while :; do :; done & done; wait",
    )]);
    spec.limits.cpu_millis = 300;
    spec.limits.interrupt_grace = Duration::ZERO;
    spec.steps[0].time_limit = Duration::from_secs(2);
    let ran = run(spec).await;
    assert_eq!(
        ran.outcome.reason,
        EndReason::Timeout {
            step: Some("one".into())
        }
    );
    let used = ran.outcome.cpu_time.unwrap();
    // 0.6 s is the limit; four loops without it would use the processors they find.
    assert!(
        used < Duration::from_secs(1) && used > Duration::from_millis(50),
        "{used:?}"
    );
}

#[tokio::test]
async fn an_outcome_tells_what_was_used() {
    let ran = run(spec(vec![shell("one", "head -c 20M /dev/zero > f")])).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited);
    assert!(ran.outcome.peak_memory_bytes.unwrap() > 20 << 20);
    assert!(ran.outcome.cpu_time.unwrap() > Duration::ZERO);
    assert_eq!((ran.outcome.oom_kills, ran.outcome.pids_refusals), (0, 0));
}

#[tokio::test]
async fn what_is_sent_and_not_read_takes_bounded_memory_of_the_kernel() {
    const SENT_MIB_MAX: u64 = 160;
    // Each of these could hold some MiB on its way; together that would be three times as much.
    let script = r#"exec perl -MIO::Socket::INET -e '
        my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:0", Listen => 100) or die "listen: $!";
        my ($block, $sent, @held) = ("x" x 65536, 0);
        for (1 .. 100) {
            my $client = IO::Socket::INET->new(PeerAddr => "127.0.0.1:" . $server->sockport) or last;
            push @held, $client, scalar($server->accept);
            $client->blocking(0);
            while (defined(my $part = syswrite($client, $block))) { $sent += $part }
        }
        print scalar(@held) / 2, " ", $sent >> 20, "\n"'"#;
    let mut spec = spec(vec![shell("one", script)]);
    spec.limits.memory_bytes = 256 << 20;
    let ran = run(spec).await;
    assert_eq!(ran.outcome.reason, EndReason::Exited, "{}", ran.stderr);
    let told: Vec<u64> = ran
        .stdout
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(told[0], 100, "every connection was made");
    assert!((1..=SENT_MIB_MAX).contains(&told[1]), "{told:?} MiB");
}
