//! Read models: what the log says, in the shapes that are asked for.
//!
//! One [`Projector`] follows the log and writes the read models and its own checkpoint in one
//! transaction per batch, so every event counts exactly once. [`Views`] reads them, [`ViewWaiter`]
//! lets a writer wait for its own write, [`rebuild`] makes them anew from zero with the same bytes.
//!
//! Nothing here decides, and nothing here knows old shapes of events: the log's reader has brought
//! them to today's. The folds are pure; times come from events, never from a clock.

pub mod audit;
mod error;
mod lag;
mod projector;
mod rebuild;
mod recorded;
pub mod run_inventory;
pub mod run_review;
mod sealed;
mod target;
mod views;
mod waiter;
pub mod workspace_status;

pub use error::{PageError, ProjectionError};
pub use lag::lag;
pub use projector::{BATCH_EVENTS_LIVE, Checkpoint, Projector, checkpoint};
pub use rebuild::{BATCH_EVENTS_REBUILD, RebuildError, RebuildReport, rebuild};
pub use recorded::Recorded;
pub use run_inventory::{
    InventoryFilter, InventoryPage, InventoryRow, UNFINISHED_MAX, UnfinishedRun,
};
pub use run_review::{AsOf, Comparison, Difference, Replay, RunReview, replay};
pub use views::{CursorKey, PAGE_ROWS_MAX, Views};
pub use waiter::{READ_YOUR_WRITES_LIMIT, ViewWaiter, Waited};
pub use workspace_status::{QueuePlace, WorkspaceStatus};
