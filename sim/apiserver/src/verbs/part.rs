//! Parts of objects that are not the status: scale, eviction, tokens.

use super::Call;
use crate::error::ApiError;
use crate::response::Response;
use crate::server::ApiServer;
use crate::yaml;

impl ApiServer {
    pub(super) fn answer_subresource(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        match call.subresource {
            "scale" => self.answer_scale(call),
            "token" => {
                let options = call.options("CreateOptions")?;
                let asked = yaml::read_json(&call.request.body).map_err(ApiError::bad_request)?;
                self.issue_token(call, asked, &options.manager)
            }
            _ => Err(ApiError::no_such_resource()),
        }
    }

    pub(super) fn review(&mut self, call: &Call<'_>) -> Result<Response, ApiError> {
        let options = call.options("CreateOptions")?;
        let asked = call.body_object(&options)?.object;
        self.answer_review(call, asked, &options.manager)
    }
}
