//! LimitRange, ResourceQuota and ServiceAccount.

use crate::strategy::Strategy;

pub(super) struct LimitRange;

impl Strategy for LimitRange {
    fn allows_create_on_update(&self) -> bool {
        true
    }
}

pub(super) struct ResourceQuota;

impl Strategy for ResourceQuota {
    fn returns_deleted_object(&self) -> bool {
        true
    }
}

pub(super) struct ServiceAccount;

impl Strategy for ServiceAccount {
    fn returns_deleted_object(&self) -> bool {
        true
    }
}
