//! Embedded migrations are read at compile time; an added file must rebuild the crate.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
