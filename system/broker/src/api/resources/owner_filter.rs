//! The query parameter by which lists are narrowed to what belongs to one key.

use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::PakId;

use crate::store::ListScope;

/// Whose to list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ByKey {
    /// Only those of the holder of the key with this id.
    pak_id: Option<PakId>,
}

impl ByKey {
    pub(crate) fn whose(&self) -> ListScope {
        self.pak_id.map_or(ListScope::All, ListScope::Key)
    }
}
