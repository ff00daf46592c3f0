//! A provider that turns on its host while a run is planned. It knows every id and every path; it has
//! the run's place, and nothing of what belongs to people or to other workspaces.

use serde_json::json;

use crate::providers::FIXTURE;
use crate::support::World;

const MAIN: &str = r#"
data "fixture_command" "hostile" {
  command = file("try.sh")
}
output "told" {
  value = data.fixture_command.hostile.output
}
"#;

/// Each line tells one try. A token is looked for wherever the program may look, one that it planted
/// itself included, so that a search that finds nothing is known to have looked.
const TRY: &str = r#"
gateway=http://127.0.0.1:8080
try() {
  echo "tried $1 $2 $(curl -s --path-as-is -m 5 -o /tmp/answer -w '%{http_code}' -X "$1" \
    -H 'Authorization: Bearer x' -H 'Content-Type: application/vnd.api+json' -d "${3:-}" "$gateway$2")"
  cat /tmp/answer >>/tmp/answers 2>/dev/null
}
try POST /v1/runs/$TFE_RUN_ID/approve
try POST /api/v2/runs/$TFE_RUN_ID/actions/apply
try POST /api/v2/runs/$TFE_RUN_ID/actions/cancel
try GET /api/v2/runs/$TFE_RUN_ID
try POST /api/v2/workspaces/OWN/state-versions '{"data":{"type":"state-versions"}}'
try GET /api/v2/workspaces/OWN/vars
try GET /v1/workspaces/OWN/variables
try GET /api/v2/workspaces/OTHER/current-state-version
try GET /api/v2/workspaces/OWN/../OTHER/current-state-version
try GET /api/v2/workspaces/OWN%2f..%2fOTHER/current-state-version
try POST /api/v2/workspaces/OTHER/state-versions
try POST /api/v2/workspaces/OTHER/actions/lock
try POST /api/v2/workspaces/OTHER/actions/unlock
try GET /api/v2/workspaces/OTHER/vars
try GET /v1/workspaces/OTHER
try GET /v1/workspaces/OTHER/variables
try GET /api/v2/organizations/acme/workspaces/victim
try GET /api/v2/organizations/acme/workspaces
try POST /runner/v1/leases
try GET /v1/openapi.json
try GET /metrics
try POST /api/v2/workspaces/OWN/actions/unlock
try POST /api/v2/workspaces/OWN/actions/lock
echo "server $(curl -s -m 5 -o /dev/null -w '%{http_code}' SERVER/readyz)"
echo "proxied $(curl -s -m 5 -o /dev/null -w '%{http_code}' -x $gateway SERVER/v1/runs/$TFE_RUN_ID)"
raw() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080 && printf "$1" >&3 && timeout 5 cat <&3' raw "$1" | grep -ao 'HTTP/1.1 [0-9]*' | tr '\n' ' '; }
echo "absolute $(raw "GET SERVER/v1/workspaces/OTHER HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")"
echo "followed $(raw "GET /api/v2/ping HTTP/1.1\r\nHost: a\r\n\r\nGET /v1/workspaces/OTHER HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")"
echo "hidden $(raw "POST /api/v2/workspaces/OWN/actions/lock HTTP/1.1\r\nHost: a\r\nContent-Length: 80\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/workspaces/OTHER HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")"
printf 'ss%s_%s' x AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA >/tmp/planted
token='ss[a-z]?_[A-Za-z0-9_-]{43}'
for place in /workspace /tmp /etc /home /root /run /var /dev/shm; do
  grep -raoE "$token" "$place" 2>/dev/null
done | sed 's/:.*//' | sort -u | sed 's/^/token in /'
for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
  tr '\0' '\n' <"$file" 2>/dev/null | grep -qE "$token" && echo "token in $file"
done
grep -o 'the-others-[a-z]*' /tmp/answers | sort -u | sed 's/^/read /'
echo done
"#;

/// The victim: a workspace with a state, a variable, and nothing to do with the hostile one.
fn victim(world: &World) -> String {
    let workspace = world.owner.workspace("victim");
    let variable = json!({"key": "password", "value": "the-others-password",
        "category": "env", "hcl": false, "sensitive": false});
    world.owner.variable(&workspace, &variable);
    let main = "resource \"terraform_data\" \"a\" {\n  input = \"the-others-state\"\n}\n";
    let run = world
        .owner
        .start(&workspace, "plan_and_apply", &[("main.tf", main)]);
    world.owner.approve(&run);
    world.owner.wait_status(&run, "applied");
    workspace.id
}

/// What each line must end with: 403 from the gateway, but for what is the run's own.
fn expected(line: &str) -> &'static str {
    let has = |words: &str| line.contains(words);
    if has("tried POST /api/v2/workspaces/OWN/actions/") {
        // What the run holds anyway; that nothing changes is looked at below.
        " 200"
    } else if has("server ") {
        " 000"
    } else if has("followed ") {
        "HTTP/1.1 204 HTTP/1.1 403"
    } else if has("hidden ") {
        // One answer: what follows a request of two lengths is not read.
        "hidden HTTP/1.1 200"
    } else {
        " 403"
    }
}

/// Reads what the program wrote into the plan's log.
fn assert_nothing_gained(told: &str) {
    let lines: Vec<&str> = told.lines().map(str::trim).collect();
    assert!(lines.iter().any(|line| line.ends_with("done")), "{told}");
    let words = [
        "tried ",
        "server ",
        "proxied ",
        "absolute ",
        "followed ",
        "hidden ",
    ];
    let is_try = |line: &&&str| words.iter().any(|word| line.contains(word));
    let tries: Vec<_> = lines.iter().filter(is_try).collect();
    assert_eq!(tries.len(), 28, "{told}");
    for line in tries {
        assert!(line.ends_with(expected(line)), "{line}\n{told}");
    }
    let found: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("token in "))
        .collect();
    assert!(
        found.len() == 1 && found[0].ends_with("/tmp/planted"),
        "{told}"
    );
    assert!(!told.contains("read the-others-"), "{told}");
}

#[test]
fn a_hostile_provider_gains_nothing_while_a_run_is_planned() {
    let world = World::shared();
    let other = victim(world);
    let own = world.owner.workspace("hostile");
    let script = TRY
        .replace("OTHER", &other)
        .replace("OWN", &own.id)
        .replace("SERVER", world.owner.url());
    let files = [
        ("fixture.tf", FIXTURE),
        ("main.tf", MAIN),
        ("try.sh", script.as_str()),
    ];
    let plan = |kind, status| {
        let run = world.owner.start(&own, kind, &files);
        world.owner.wait_status(&run, status);
        assert_nothing_gained(&world.owner.log(&run, "plan").replace(&own.id, "OWN"));
        run
    };
    plan("speculative", "speculative_finished");
    let lock = &world.owner.detail(&own)["lock"];
    assert!(lock.is_null(), "a speculative run locked: {lock}");

    let run = plan("plan_and_apply", "awaiting_approval");
    let lock = world.owner.detail(&own)["lock"].to_string();
    assert!(lock.contains(&run), "the lock was given away: {lock}");
    world.owner.approve(&run);
    let applied = world.owner.wait_status(&run, "applied");
    assert_eq!(applied["apply"]["published"]["serial"], 1, "{applied:#}");

    let victim = world.owner.get(&format!("/v1/workspaces/{other}"));
    assert!(victim["lock"].is_null(), "{victim:#}");
    assert_eq!(victim["state"]["serial"], 1, "{victim:#}");
}
