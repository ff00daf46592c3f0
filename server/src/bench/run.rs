//! `stackship bench run`.

use std::time::Duration;

use super::figures::{Figure, seconds};
use super::product::{Product, Taken};
use super::{Bench, bare};
use crate::Failure;

/// Measures pairs, one after the other, so that both sides see the same machine.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let tofu = bench.tofu()?;
    let product = Product::start(bench).await?;
    // One of each first: caches and connection pools are warm in every measured pair.
    let warm = product.workspace(0).await?;
    product.run(&warm).await?;
    bare::run(&tofu).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 1..=bench.n {
        let workspace = product.workspace(number).await?;
        ours.push(product.run(&workspace).await?);
        theirs.push(bare::run(&tofu).await?);
    }
    product.stop().await?;
    let of = |part: fn(&Taken) -> Duration| ours.iter().map(part).collect::<Vec<_>>();
    let whole = of(|taken| taken.whole);
    let extra: Vec<Duration> = whole
        .iter()
        .zip(&theirs)
        .map(|(ours, bare)| ours.saturating_sub(*bare))
        .collect();
    Ok(vec![
        seconds(
            "run of 20 resources, upload to applied",
            &whole,
            Some(&theirs),
        ),
        seconds("extra over bare tofu, a run", &extra, None),
        seconds("created to plan started", &of(|taken| taken.to_plan), None),
        seconds("plan phase", &of(|taken| taken.plan), None),
        seconds(
            "plan ended to approved",
            &of(|taken| taken.to_approval),
            None,
        ),
        seconds(
            "approved to apply started",
            &of(|taken| taken.to_apply),
            None,
        ),
        seconds("apply phase", &of(|taken| taken.apply), None),
    ])
}
