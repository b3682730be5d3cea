//! Webhook subscriptions and their deliveries.

use http::{Method, StatusCode};
use sindri_model::WebhookId;
use sindri_model::wire::{
    CreateWebhookRequest, TestWebhookResponse, UpdateWebhookRequest, WebhookDelivery, WebhookResponse,
};

use crate::client::{Call, Client};
use crate::error::ClientError;

/// Header with the secret that the broker generated.
const SECRET_HEADER: &str = "x-sindri-signing-secret";

/// A new subscription.
#[derive(Clone, Debug)]
pub struct CreatedWebhook {
    /// The subscription.
    pub webhook: WebhookResponse,
    /// Secret that signs the messages, if the broker generated it. It cannot be read again.
    pub secret: Option<String>,
}

impl Client {
    /// Creates a subscription.
    pub async fn create_webhook(&self, request: &CreateWebhookRequest) -> Result<CreatedWebhook, ClientError> {
        let call = Call::new(Method::POST, "/webhooks".to_owned(), format!("create webhook {}", request.name));
        let call = call.with_json(request);
        let response = self.send_expecting(&call, StatusCode::CREATED).await?;
        let secret = response.headers.get(SECRET_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(CreatedWebhook { webhook: call.deserialize(&response.body)?, secret })
    }

    /// Lists all subscriptions.
    pub async fn list_webhooks(&self) -> Result<Vec<WebhookResponse>, ClientError> {
        self.fetch_list("/webhooks", "list the webhooks").await
    }

    /// Changes a subscription.
    pub async fn update_webhook(
        &self,
        webhook: WebhookId,
        changes: &UpdateWebhookRequest,
    ) -> Result<WebhookResponse, ClientError> {
        let call = Call::new(Method::PUT, format!("/webhooks/{webhook}"), format!("change webhook {webhook}"));
        self.fetch_json(call.with_json(changes), StatusCode::OK).await
    }

    /// Deletes a subscription and its deliveries.
    pub async fn delete_webhook(&self, webhook: WebhookId) -> Result<(), ClientError> {
        let (path, operation) = (format!("/webhooks/{webhook}"), format!("delete webhook {webhook}"));
        self.send_expecting_no_content(Call::new(Method::DELETE, path, operation)).await
    }

    /// Sends a test message to a subscriber.
    pub async fn test_webhook(&self, webhook: WebhookId) -> Result<TestWebhookResponse, ClientError> {
        let operation = format!("send a test message to webhook {webhook}");
        self.fetch_json(Call::new(Method::POST, format!("/webhooks/{webhook}/test"), operation), StatusCode::OK).await
    }

    /// Lists the newest deliveries of a subscription, newest first.
    pub async fn list_deliveries(&self, webhook: WebhookId, limit: usize) -> Result<Vec<WebhookDelivery>, ClientError> {
        let path = format!("/webhooks/{webhook}/deliveries?limit={limit}");
        self.fetch_json(Call::get(path, format!("list the deliveries of webhook {webhook}")), StatusCode::OK).await
    }
}
