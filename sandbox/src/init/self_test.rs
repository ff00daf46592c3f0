//! placeholder
pub(crate) fn main(_: Option<std::ffi::OsString>) -> ! {
    std::process::exit(3)
}
