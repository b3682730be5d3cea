//! Looking without touching: what a pass would do, and what is left of stacks that nobody wants.

mod diff;
mod orphans;
mod preview;
