//! `stackship audit replay`.

use serde_json::Value;
use stackship_projections::{AsOf, Comparison, Difference, replay};

use super::Replay;
use crate::Failure;
use crate::answer::{answer, remark};
use crate::database::Database;
use crate::settings::Settings;

/// Makes a run's review again, prints it, and holds it against the stored one.
pub async fn run(settings: &Settings, options: &Replay) -> Result<(), Failure> {
    let as_of = match (options.at, options.at_position) {
        (Some(sequence), _) => AsOf::Sequence(sequence),
        (None, Some(position)) => AsOf::Position(position),
        (None, None) => AsOf::Newest,
    };
    let database = Database::join(settings).await?;
    let pool = database.auditor()?;
    let replayed = replay(&pool, options.run, as_of).await;
    pool.close().await;
    database.close().await?;
    let Some(replayed) = replayed? else {
        return Err(format!("--run: no event of {} was there by then", options.run).into());
    };
    answer(serde_json::to_string_pretty(&replayed.review)?)?;
    let sequence = replayed.review.last_sequence;
    match replayed.comparison {
        Comparison::Earlier => {
            remark(format_args!(
                "As of event {sequence}; only the newest review is stored."
            ));
            Ok(())
        }
        Comparison::Same => {
            remark(format_args!(
                "As of event {sequence}; the stored review is the same, byte for byte."
            ));
            Ok(())
        }
        Comparison::NotStored => Err("no review of this run is stored".into()),
        Comparison::Differs(difference) => Err(told(&difference).into()),
    }
}

fn told(difference: &Difference) -> String {
    let value = |value: &Option<Value>| {
        let text = value.as_ref().map(Value::to_string);
        text.unwrap_or_else(|| "nothing".to_owned())
    };
    let field = if difference.field.is_empty() {
        "the document"
    } else {
        &difference.field
    };
    format!(
        "the stored review differs at {field}: the log makes it {}, stored is {}",
        value(&difference.replayed),
        value(&difference.stored)
    )
}
