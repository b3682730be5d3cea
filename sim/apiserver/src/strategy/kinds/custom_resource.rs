//! Custom resources. Their schemas and CEL rules are validated by `strategy::validation`.

use crate::strategy::Strategy;

pub(super) struct CustomResource;

impl Strategy for CustomResource {
    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
