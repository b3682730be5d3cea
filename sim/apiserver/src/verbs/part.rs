//! Parts of objects that are not the status: scale, eviction, tokens.

use super::Call;
use crate::error::ApiError;
use crate::response::Response;
use crate::server::ApiServer;

impl ApiServer {
    pub(super) fn answer_subresource(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        match call.subresource {
            "scale" => self.answer_scale(call),
            _ => Err(ApiError::no_such_resource()),
        }
    }

    pub(super) fn review(&mut self, _call: &Call<'_>) -> Result<Response, ApiError> {
        Err(ApiError::no_such_resource())
    }
}
