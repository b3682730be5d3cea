//! Submissions of revisions: the files of a bundle, and the request that is safe to repeat.

mod files;
mod submit;

pub(crate) use files::BundleFiles;
pub(crate) use submit::{describe, submit_text};
