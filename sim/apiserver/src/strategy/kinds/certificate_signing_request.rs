//! CertificateSigningRequest.

use crate::strategy::Strategy;
use crate::strategy::checks::names::path_segment_name_errors;

pub(super) struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {
    fn name_errors(&self, name: &str) -> Vec<String> {
        path_segment_name_errors(name)
    }
}
