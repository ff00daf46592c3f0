//! `stackship projections rebuild`.

use crate::Failure;
use crate::answer::answer;
use crate::database::Database;
use crate::settings::Settings;

/// Builds every read model anew and says how long it took.
pub async fn rebuild(settings: &Settings) -> Result<(), Failure> {
    let database = Database::join(settings).await?;
    let pool = database.owner()?;
    let report = stackship_projections::rebuild(&pool).await?;
    pool.close().await;
    database.close().await?;
    answer(format_args!(
        "Rebuilt the read models from {} events in {} batches; generation {} is in use ({:.1} s).",
        report.events,
        report.batches,
        report.generation,
        report.took.as_secs_f64()
    ))
}
