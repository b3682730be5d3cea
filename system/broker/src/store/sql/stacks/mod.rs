//! Stacks and the submission of revisions.

pub(crate) mod lifecycle;
pub(crate) mod submissions;
