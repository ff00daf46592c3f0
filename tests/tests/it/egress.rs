//! What a run's own programs can reach.

use std::io::ErrorKind;
use std::net::TcpListener;

use crate::support::World;

/// Tries every way out, and says how each went.
fn script(port: u16) -> String {
    format!(
        r#"
set -f
try() {{ echo "tried $1: $(curl -sS -m 8 -o /dev/null -w '%{{http_connect}} %{{http_code}}' $2 "$3" 2>&1 | tr '\n' ' ')"; }}
try direct "--noproxy *" http://127.0.0.1:{port}/
try address "--noproxy *" http://192.0.2.1/
try name "--noproxy *" http://localhost.example/
try loopback "-p" http://127.0.0.1:{port}/
try localhost "-p" http://localhost:{port}/
try metadata "-p" http://169.254.169.254/latest/meta-data/
try unlisted "-p" http://unlisted.example/
try plain "" http://127.0.0.1:{port}/
echo "proxy is ${{https_proxy:-none}}"
"#
    )
}

const MAIN: &str = r#"
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "sh ${path.module}/try.sh"
  }
}
"#;

/// Applies the script, and says its log and the run.
#[track_caller]
fn tried(world: &World, listener: &TcpListener) -> (String, String) {
    let port = listener.local_addr().expect("it is bound").port();
    let workspace = world.owner.workspace("ways-out");
    let files = [("main.tf", MAIN), ("try.sh", &script(port))];
    let run = world.owner.start(&workspace, "plan_and_apply", &files);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    (world.owner.log(&run, "apply"), run)
}

fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener
        .set_nonblocking(true)
        .expect("a socket of one's own");
    listener
}

#[track_caller]
fn assert_untouched(listener: &TcpListener) {
    let accepted = listener.accept().map(|(_, from)| from);
    assert_eq!(
        accepted.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock)
    );
}

#[track_caller]
fn outcome<'a>(log: &'a str, what: &str) -> &'a str {
    let line = log
        .lines()
        .find_map(|line| line.split_once(&format!("tried {what}: ")));
    line.unwrap_or_else(|| panic!("`{what}` was not tried:\n{log}"))
        .1
}

#[test]
fn without_a_list_nothing_leaves_a_run() {
    let listener = listener();
    let (log, _) = tried(World::shared(), &listener);
    for what in [
        "direct",
        "address",
        "name",
        "loopback",
        "localhost",
        "metadata",
        "unlisted",
        "plain",
    ] {
        let outcome = outcome(&log, what);
        assert!(outcome.contains("000 000"), "{what}: {outcome}");
    }
    assert!(log.contains("proxy is none"), "{log}");
    assert_untouched(&listener);
}

#[test]
fn with_a_list_the_proxy_refuses_what_is_not_on_it_and_what_is_not_public_and_says_so() {
    let listener = listener();
    let port = listener.local_addr().expect("it is bound").port();
    // On the list, and refused all the same: they lead to the host itself.
    let list = format!(
        r#"["127.0.0.1:{port}", "localhost:{port}", "169.254.169.254:80", "allowed.example"]"#
    );
    let world = World::own(&[("STACKSHIP_RUNNER__EGRESS_ALLOW", &list)]);
    let (log, run) = tried(&world, &listener);
    for what in ["direct", "address", "name"] {
        let outcome = outcome(&log, what);
        assert!(
            outcome.contains("000 000"),
            "past the proxy, {what}: {outcome}"
        );
    }
    for what in ["loopback", "localhost", "metadata", "unlisted"] {
        let outcome = outcome(&log, what);
        assert!(outcome.contains("403 000"), "{what}: {outcome}");
    }
    let plain = outcome(&log, "plain");
    assert!(plain.contains("000 403"), "{plain}");
    assert_untouched(&listener);
    let logged = world.server.log();
    for (host, why) in [
        ("127.0.0.1", "the host resolves to a blocked address"),
        ("localhost", "the host resolves to a blocked address"),
        ("169.254.169.254", "the host resolves to a blocked address"),
        (
            "unlisted.example",
            "the host and port are not on the allow-list",
        ),
    ] {
        let line = logged.lines().find(|line| {
            line.contains("Egress refused") && line.contains(host) && line.contains(why)
        });
        let line = line.unwrap_or_else(|| panic!("no refusal of {host}:\n{logged}"));
        assert!(line.contains(&run), "{line}");
    }
}
