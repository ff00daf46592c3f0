//! Where log lines go: standard error, as text or as JSON.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::Failure;
use crate::settings::{LogFormat, Settings};

/// Starts logging for the whole process.
pub fn start(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&settings.log_filter)
        .map_err(|error| format!("setting `log_filter`: {error}"))?;
    let writer = BoxMakeWriter::new(std::io::stderr);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Whoever read the log may be gone; complaining of it on the same stream would panic.
        .log_internal_errors(false)
        .with_writer(writer);
    match settings.log_format {
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    }
}
