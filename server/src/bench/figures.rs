//! Figures and how they are printed.

use std::time::Duration;

use serde::Serialize;

use crate::Failure;
use crate::answer::answer;

/// One measured figure beside its baseline; medians, in the unit named.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    #[serde(rename = "figure")]
    name: &'static str,
    value: f64,
    unit: &'static str,
    baseline: Option<f64>,
    ratio: Option<f64>,
    n: usize,
    min: f64,
    max: f64,
}

/// The median of seconds in `samples`, beside the median of `baseline`.
pub fn seconds(name: &'static str, samples: &[Duration], baseline: Option<&[Duration]>) -> Figure {
    medians(name, "s", &sorted(samples), baseline.map(sorted))
}

/// The median of sorted samples, beside that of a sorted baseline.
fn medians(
    name: &'static str,
    unit: &'static str,
    sorted: &[f64],
    baseline: Option<Vec<f64>>,
) -> Figure {
    let value = median(sorted);
    let baseline = baseline.map(|sorted| median(&sorted));
    Figure {
        name,
        value,
        unit,
        baseline,
        ratio: baseline.filter(|base| *base > 0.0).map(|base| value / base),
        n: sorted.len(),
        min: sorted.first().copied().unwrap_or_default(),
        max: sorted.last().copied().unwrap_or_default(),
    }
}

/// How many of `count` things a second, by the median of the times that all of them took, beside the
/// same for `baseline`.
pub fn rate(
    name: &'static str,
    count: u32,
    samples: &[Duration],
    baseline: Option<&[Duration]>,
) -> Figure {
    let per_second = |seconds: f64| f64::from(count) / seconds.max(f64::EPSILON);
    let sorted = sorted(samples);
    let value = per_second(median(&sorted));
    let baseline = baseline.map(|samples| per_second(median(&self::sorted(samples))));
    Figure {
        name,
        value,
        unit: "/s",
        baseline,
        ratio: baseline.map(|base| value / base),
        n: sorted.len(),
        min: sorted.last().copied().map(per_second).unwrap_or_default(),
        max: sorted.first().copied().map(per_second).unwrap_or_default(),
    }
}

/// The median of `samples` bytes, in MiB, beside the median of `baseline`.
pub fn mebibytes(name: &'static str, samples: &[u64], baseline: Option<&[u64]>) -> Figure {
    let baseline = baseline.map(in_mebibytes);
    medians(name, "MiB", &in_mebibytes(samples), baseline)
}

fn in_mebibytes(samples: &[u64]) -> Vec<f64> {
    const KIB: u64 = 1024;
    // Whole KiB first: those fit 32 bits for any memory that a process here has.
    let mut sorted: Vec<f64> = samples
        .iter()
        .map(|bytes| f64::from(u32::try_from(bytes / KIB).unwrap_or(u32::MAX)) / 1024.0)
        .collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How many of something there were over all of `n`, beside how many there could have been.
pub fn count(name: &'static str, value: u32, of: u32, n: usize) -> Figure {
    let (value, of) = (f64::from(value), f64::from(of));
    Figure {
        name,
        value,
        unit: "",
        baseline: Some(of),
        ratio: (of > 0.0).then(|| value / of),
        n,
        min: value,
        max: value,
    }
}

impl Figure {
    /// Whether there was nothing at all of it.
    pub fn is_zero(&self) -> bool {
        self.value.abs() < f64::EPSILON
    }
}

/// The median and the 99th percentile of `samples` in milliseconds, each beside the same of `baseline`.
pub fn percentiles(
    names: [&'static str; 2],
    samples: &[Duration],
    baseline: &[Duration],
) -> [Figure; 2] {
    let (ours, theirs) = (sorted(samples), sorted(baseline));
    let of = |name, part: f64| {
        let milliseconds = |sorted: &[f64]| percentile(sorted, part) * 1_000.0;
        let (value, base) = (milliseconds(&ours), milliseconds(&theirs));
        Figure {
            name,
            value,
            unit: "ms",
            baseline: Some(base),
            ratio: (base > 0.0).then(|| value / base),
            n: ours.len(),
            min: ours.first().copied().unwrap_or_default() * 1_000.0,
            max: ours.last().copied().unwrap_or_default() * 1_000.0,
        }
    };
    [of(names[0], 0.5), of(names[1], 0.99)]
}

/// The smallest sample that at least this part of all samples does not exceed.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let reached = |index: usize| {
        let (below, all) = (u32::try_from(index + 1), u32::try_from(sorted.len()));
        match (below, all) {
            (Ok(below), Ok(all)) => f64::from(below) >= part * f64::from(all),
            _ => true,
        }
    };
    let index = (0..sorted.len()).find(|index| reached(*index));
    index.map_or(0.0, |index| sorted[index])
}

fn sorted(samples: &[Duration]) -> Vec<f64> {
    let mut seconds: Vec<f64> = samples.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// One object a line.
pub fn print_json(figures: &[Figure]) -> Result<(), Failure> {
    for figure in figures {
        answer(serde_json::json!(figure))?;
    }
    Ok(())
}

/// A table for people.
pub fn print_table(figures: &[Figure]) -> Result<(), Failure> {
    answer(format_args!(
        "{:<44} {:>9} {:>9} {:>7} {:>4} {:>9} {:>9}",
        "figure", "median", "baseline", "ratio", "n", "min", "max"
    ))?;
    for figure in figures {
        let optional = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
        };
        answer(format_args!(
            "{:<44} {:>7.3} {} {:>9} {:>7} {:>4} {:>9.3} {:>9.3}",
            figure.name,
            figure.value,
            figure.unit,
            optional(figure.baseline),
            optional(figure.ratio),
            figure.n,
            figure.min,
            figure.max
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_inverse_of_its_time() {
        let samples = [4, 1, 2].map(Duration::from_secs);
        let figure = rate("x", 8, &samples, Some(&[Duration::from_secs(1)]));
        assert!((figure.value - 4.0).abs() < 1e-9);
        assert!((figure.ratio.unwrap() - 0.5).abs() < 1e-9);
        assert!((figure.min - 2.0).abs() < 1e-9 && (figure.max - 8.0).abs() < 1e-9);
    }

    #[test]
    fn bytes_are_told_in_mebibytes() {
        let samples = [1 << 20, 3 << 20, (2 << 20) + (1 << 19)];
        let figure = mebibytes("x", &samples, Some(&[5 << 20]));
        assert!((figure.ratio.unwrap() - 0.5).abs() < 1e-9);
        assert!((figure.value - 2.5).abs() < 1e-9);
        assert!((figure.min - 1.0).abs() < 1e-9 && (figure.max - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_count_is_nothing_only_when_it_is_zero() {
        assert!(count("x", 0, 7, 3).is_zero());
        let one = count("x", 1, 4, 3);
        assert!(!one.is_zero());
        assert!((one.ratio.unwrap() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_is_a_sample_that_was_taken() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (part, expected) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!(
                (percentile(&hundred, part) - expected).abs() < 1e-9,
                "{part}"
            );
        }
        assert!((percentile(&[7.0], 0.99) - 7.0).abs() < 1e-9);
        assert!(percentile(&[], 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_middle_of_the_two() {
        let samples = [4, 1, 3, 2].map(Duration::from_secs);
        let figure = seconds("x", &samples, Some(&[Duration::from_secs(5)]));
        assert!((figure.value - 2.5).abs() < 1e-9);
        assert!((figure.ratio.unwrap() - 0.5).abs() < 1e-9);
        assert!((figure.min - 1.0).abs() < 1e-9 && (figure.max - 4.0).abs() < 1e-9);
    }
}
