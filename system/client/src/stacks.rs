//! Stacks and their revisions.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use sindri_model::wire::{DeploymentObject, NewStack, Stack};
use sindri_model::{RevisionId, StackId};

use crate::client::{Call, Client, YAML};
use crate::error::ClientError;
use crate::outcomes::IDEMPOTENCY_KEY;

/// Largest page of a list.
const PAGE_ITEMS: usize = 10_000;

impl Client {
    /// Creates a stack.
    pub async fn create_stack(&self, request: &NewStack) -> Result<Stack, ClientError> {
        let call = Call::new(Method::POST, "/stacks".to_owned(), format!("create stack {}", request.name));
        self.fetch_json(call.with_json(request), StatusCode::CREATED).await
    }

    /// Lists the stacks that exist and that the key may read.
    pub async fn list_stacks(&self) -> Result<Vec<Stack>, ClientError> {
        self.fetch_list("/stacks", "list the stacks").await
    }

    /// Reads a stack.
    pub async fn get_stack(&self, stack: StackId) -> Result<Stack, ClientError> {
        self.fetch_json(Call::get(format!("/stacks/{stack}"), format!("read stack {stack}")), StatusCode::OK).await
    }

    /// Deletes a stack. Every agent that received it removes it.
    pub async fn delete_stack(&self, stack: StackId) -> Result<(), ClientError> {
        self.send_expecting_no_content(Call::new(
            Method::DELETE,
            format!("/stacks/{stack}"),
            format!("delete stack {stack}"),
        ))
        .await
    }

    /// Submits a new revision of a stack with this bundle.
    pub async fn submit_revision(&self, stack: StackId, yaml: &str) -> Result<DeploymentObject, ClientError> {
        let operation = format!("submit a revision of stack {stack}");
        let mut call = Call::new(Method::POST, format!("/stacks/{stack}/deployment-objects"), operation);
        call.body = yaml.to_owned().into();
        self.fetch_json(call.with_header(CONTENT_TYPE, YAML), StatusCode::CREATED).await
    }

    /// Submits a new revision of a stack with this bundle. It is submitted once per `idempotency_key`, so that a caller that got
    /// no response can send it again.
    pub async fn submit_revision_once(
        &self,
        stack: StackId,
        yaml: &str,
        idempotency_key: &str,
    ) -> Result<DeploymentObject, ClientError> {
        let operation = format!("submit a revision of stack {stack}");
        let mut call = Call::new(Method::POST, format!("/stacks/{stack}/deployment-objects"), operation);
        call.body = yaml.to_owned().into();
        let key = HeaderValue::try_from(idempotency_key)
            .map_err(|_| call.malformed_response("the idempotency key is not a valid header value"))?;
        let call = call.with_header(CONTENT_TYPE, YAML).with_header(IDEMPOTENCY_KEY, key);
        self.fetch_json(call, StatusCode::CREATED).await
    }

    /// Returns the newest revision of a stack, without its bundle.
    pub async fn get_newest_revision(&self, stack: StackId) -> Result<Option<DeploymentObject>, ClientError> {
        let mut newest: Option<DeploymentObject> = None;
        loop {
            let operation = format!("list the revisions of stack {stack}");
            let after = newest.as_ref().map(|revision| format!("&after={}", revision.id)).unwrap_or_default();
            let path = format!("/stacks/{stack}/deployment-objects?content=false&limit={PAGE_ITEMS}{after}");
            let page: Vec<DeploymentObject> = self.fetch_json(Call::get(path, operation), StatusCode::OK).await?;
            let is_last = page.len() < PAGE_ITEMS;
            newest = page.into_iter().next_back().or(newest);
            if is_last {
                return Ok(newest);
            }
        }
    }

    /// Reads a revision.
    pub async fn get_revision(&self, revision: RevisionId) -> Result<DeploymentObject, ClientError> {
        let call = Call::get(format!("/deployment-objects/{revision}"), format!("read revision {revision}"));
        self.fetch_json(call, StatusCode::OK).await
    }
}
