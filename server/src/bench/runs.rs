//! `stackship bench runs`: pages of a long list, against the same rows read bare.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use stackship_domain::ids::RunId;
use stackship_projections::{InventoryFilter, PAGE_ROWS_MAX};

use super::Bench;
use super::figures::{Figure, percentiles};
use super::served::{Served, WORKSPACES};
use crate::Failure;
use crate::answer::remark;

/// How many runs there are.
const RUNS: i32 = 1_000_000;
/// How many rows a measured page has.
const PAGE_ROWS: u16 = 50;
/// How many pages of that size come before the measured late one, which is the last.
const LATE_PAGES: usize = 19_999;
/// How many reads one pair of measurements has on each side.
const READS: u16 = 20;

/// One kind of page.
struct Page {
    names: [&'static str; 2],
    query: String,
    /// The same rows in SQL, after the organization.
    bare: String,
    rows: usize,
}

/// Measures pairs, one after the other, so that both sides see the same machine.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let served = Served::start().await?;
    fill(&served).await?;
    let cursor = walk(&served).await?;
    let mut figures = Vec::new();
    for page in pages(&cursor) {
        // Once each first: what is read is in memory for every measured pair.
        read(&served, &page).await?;
        bare(&served, &page).await?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..bench.n {
            for _ in 0..READS {
                ours.push(read(&served, &page).await?);
            }
            for _ in 0..READS {
                theirs.push(bare(&served, &page).await?);
            }
        }
        figures.extend(percentiles(page.names, &ours, &theirs));
    }
    served.stop().await?;
    Ok(figures)
}

/// Fills the read model as the projector would have, without a log: every thousandth run failed, fifty
/// wait, seven share each second, all others were applied.
async fn fill(served: &Served) -> Result<(), Failure> {
    let began = Instant::now();
    let mut connection = served.filler().await?;
    sqlx::query(
        "insert into view.run_inventory (run_id, organization_id, project_id, workspace_id, status, kind, message, \
             source, created_by, created_at, updated_at, ended_at, last_sequence) \
         select 'run-' || lpad(n::text, 26, '0'), $1, $2, 'ws-' || lpad((n % $4)::text, 26, '0'), status, \
             'plan_and_apply', 'Change number ' || n, 'cli', $3, at, at + interval '5 minutes', \
             case status when 'awaiting_approval' then null else at + interval '5 minutes' end, 12 \
         from (select n, timestamptz '2026-01-01 00:00:00Z' + (n / 7) * interval '1 second' as at, \
             case when n > $5 - 50 then 'awaiting_approval' when n % 1000 = 7 then 'failed' else 'applied' end as status \
             from generate_series(1, $5) n) filled",
    )
    .bind(served.made.organization.to_string())
    .bind(served.made.project.to_string())
    .bind(served.made.owner.to_string())
    .bind(WORKSPACES)
    .bind(RUNS)
    .execute(&mut connection)
    .await?;
    sqlx::query("vacuum (analyze) view.run_inventory")
        .execute(&mut connection)
        .await?;
    remark(format_args!(
        "Filled view.run_inventory with {RUNS} rows in {WORKSPACES} workspaces by one statement, not through the log: \
         one in 1,000 failed, the newest 50 wait, the others were applied; {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Walks through the whole list, each page from the cursor of the one before, and sees every run once.
/// The cursor of the last measured page comes from there: nothing else can make one.
async fn walk(served: &Served) -> Result<String, Failure> {
    let began = Instant::now();
    let before_late = LATE_PAGES * usize::from(PAGE_ROWS);
    let mut seen: HashSet<RunId> = HashSet::with_capacity(usize::try_from(RUNS)?);
    let (mut cursor, mut late) = (None::<String>, None);
    loop {
        let left = before_late.saturating_sub(seen.len());
        let limit = match u16::try_from(left) {
            Ok(left) if left > 0 => left.min(PAGE_ROWS_MAX),
            _ => PAGE_ROWS_MAX,
        };
        let page = served.app.views.inventory_page(
            served.made.organization,
            InventoryFilter::default(),
            cursor.as_deref(),
            limit,
        );
        let page = page.await?;
        for row in &page.rows {
            if !seen.insert(row.run) {
                return Err(format!("{} was on two pages", row.run).into());
            }
        }
        if seen.len() == before_late {
            late.clone_from(&page.next_cursor);
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    if i32::try_from(seen.len()) != Ok(RUNS) {
        return Err(format!("the walk saw {} runs, not {RUNS}", seen.len()).into());
    }
    remark(format_args!(
        "Walked the whole list by its cursors: every run once; {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    late.ok_or_else(|| "the walk did not come by the measured page".into())
}

fn pages(cursor: &str) -> [Page; 5] {
    let workspace = format!("ws-{:0>26}", 7);
    let page = |names, query: String, bare: &str| Page {
        names,
        query,
        bare: bare.to_owned(),
        rows: usize::from(PAGE_ROWS),
    };
    let oldest_before = i32::from(PAGE_ROWS) + 1;
    [
        page(
            [
                "first page of 1,000,000 runs, p50",
                "first page of 1,000,000 runs, p99",
            ],
            String::new(),
            "",
        ),
        page(
            [
                "page of one status, 1 of 1,000, p50",
                "page of one status, 1 of 1,000, p99",
            ],
            "&status=failed".to_owned(),
            "and status = 'failed' and ended_at is not null",
        ),
        page(
            ["page of one workspace, p50", "page of one workspace, p99"],
            format!("&workspace={workspace}"),
            &format!("and workspace_id = '{workspace}'"),
        ),
        page(
            [
                "page of workspace and status, p50",
                "page of workspace and status, p99",
            ],
            format!("&workspace={workspace}&status=applied"),
            &format!(
                "and workspace_id = '{workspace}' and status = 'applied' and ended_at is not null"
            ),
        ),
        page(
            ["page 20,000 of 50 runs, p50", "page 20,000 of 50 runs, p99"],
            format!("&cursor={cursor}"),
            &format!(
                "and (created_at, run_id) < (timestamptz '2026-01-01 00:00:00Z' + ({oldest_before} / 7) * interval \
                 '1 second', 'run-{oldest_before:0>26}')"
            ),
        ),
    ]
}

async fn read(served: &Served, page: &Page) -> Result<Duration, Failure> {
    let path = format!(
        "/v1/organizations/{}/runs?limit={PAGE_ROWS}{}",
        super::product::ORGANIZATION,
        page.query
    );
    let (took, body) = served.read(&path).await?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    let rows = answer["data"].as_array().map_or(0, Vec::len);
    if rows == page.rows {
        Ok(took)
    } else {
        Err(format!("{path} has {rows} rows").into())
    }
}

/// The baseline: the same rows, from the same database, in the same order.
async fn bare(served: &Served, page: &Page) -> Result<Duration, Failure> {
    let began = Instant::now();
    let rows = sqlx::query(&format!(
        "select * from view.run_inventory where organization_id = $1 {} \
         order by created_at desc, run_id desc limit {PAGE_ROWS}",
        page.bare
    ))
    .bind(served.made.organization.to_string())
    .fetch_all(&served.bare)
    .await?;
    let took = began.elapsed();
    if rows.len() == page.rows {
        Ok(took)
    } else {
        Err(format!("{}: {} rows", page.names[0], rows.len()).into())
    }
}
