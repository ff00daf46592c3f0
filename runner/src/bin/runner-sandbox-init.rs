//! The helpers of sandbox and runner as a binary of their own, for this room's tests: a test binary
//! cannot be re-executed as the supervisor of a sandbox.

fn main() {
    stackship_sandbox::run_helper_if_asked();
    stackship_runner::run_helper_if_asked();
    eprintln!("this program is started by the sandbox driver; it does nothing by itself");
    std::process::exit(2);
}
