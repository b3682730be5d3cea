//! Selection of a part of a list.

use sindri_model::{GeneratorId, PakId};

/// Page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Id of the last item of the page before. None: the first page.
    pub after: Option<String>,
    /// Largest number of items.
    pub limit: i64,
}

impl Page {
    /// Largest page.
    pub const LIMIT_MAX: i64 = 10_000;
    /// Size of the texts of a page after which it ends before its limit: bundles, messages, plans and payloads. A page
    /// has one item more than fits, so it is never empty because of its size.
    pub const TEXT_BYTES_MAX: i64 = 4 * 1024 * 1024;
    /// The first page, of the largest size.
    pub const FIRST: Self = Self { after: None, limit: Self::LIMIT_MAX };
}

/// Owner whose stacks, events or agents are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListScope {
    /// Everything.
    All,
    /// Items of this generator.
    Generator(GeneratorId),
    /// Items that the holder of this key may read.
    Key(PakId),
}
