//! The state of one server: watches and the schedule of controllers.

pub(crate) mod schedule;
pub(crate) mod watch;
