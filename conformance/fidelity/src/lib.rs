//! Compares the simulated API server with a real one, answer by answer.
//!
//! Every recorded exchange is played to the machine in this process, on a clock that moves only when it is told to, and
//! each answer is held against the recorded one. What differs is listed; nothing is guessed and nothing is left out.

pub mod columns;
pub mod exchange;
pub mod expected;
pub mod generated;
pub mod page;
pub mod report;
pub mod simulated;
