//! The room's helpers as a binary of their own, for its tests and for a separate deployment.

fn main() {
    stackship_sandbox::run_helper_if_asked();
    eprintln!("this program is started by the sandbox driver; it does nothing by itself");
    std::process::exit(2);
}
