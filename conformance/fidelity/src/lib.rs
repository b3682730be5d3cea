//! Compares the simulated API server with a real one, response by response.
//!
//! Every recorded exchange is run with the simulated server in this process, on a virtual clock, and each response is compared with
//! the recorded one. All differences are listed.

pub mod exchange;
pub mod expected;
pub mod generated;
pub mod generated_report;
pub mod page;
pub mod report;
pub mod side_by_side;
pub mod simulated;
