//! What hostile code tries from inside, and what it sees.

mod files;
mod kernel;
mod logs;
mod network;
mod processes;
mod resources;
