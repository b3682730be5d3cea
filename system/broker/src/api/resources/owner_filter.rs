//! Query parameter that limits lists to what belongs to the holder of one key.

use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::PakId;

use crate::store::ListScope;

/// Filter of lists by owner.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OwnerFilter {
    /// Only what belongs to the holder of the key with this id.
    pak_id: Option<PakId>,
}

impl OwnerFilter {
    pub(crate) fn scope(&self) -> ListScope {
        self.pak_id.map_or(ListScope::All, ListScope::Key)
    }
}
