//! Submissions of revisions: the files of a bundle, the request that is safe to repeat, and what follows it.

mod empty;
mod files;
mod finish;
mod submit;

pub(crate) use empty::confirm_empty;
pub(crate) use files::BundleFiles;
pub(crate) use finish::finish;
pub(crate) use submit::{describe, submit_text};
