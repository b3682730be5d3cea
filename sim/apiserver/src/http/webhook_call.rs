//! Calls of webhooks: what the machine asks the program around it to send, and what was answered.
//!
//! The machine sends nothing itself. A request whose decision needs a webhook ends with its calls, without any change; the
//! program makes the calls and sends the request again, with the answers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

/// One POST request to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookCall {
    /// UID of the review. The same webhook with the same content has the same one within a request.
    pub id: String,
    /// URL, as error messages show it.
    pub url: String,
    /// Host name or IP address to connect to: that of the URL, or the one to which the Service resolves.
    pub host: String,
    /// Port to connect to.
    pub port: u16,
    /// Name that the certificate of the webhook must have: that of the URL, or `NAME.NAMESPACE.svc` for a Service.
    pub server_name: String,
    /// Certificate authorities in PEM; if empty, those of the machine that calls.
    pub ca_bundle: Bytes,
    /// Longest time until the answer is complete.
    pub timeout: Duration,
    /// Review in JSON.
    pub body: Bytes,
}

/// Complete response of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookReply {
    /// HTTP status.
    pub status: u16,
    /// Content type; empty if there is none.
    pub content_type: String,
    /// Body.
    pub body: Bytes,
}

/// Result of a call. The error is the cause as Go's HTTP client words it, such as `context deadline exceeded`.
pub type WebhookAnswer = Result<WebhookReply, String>;

/// Answers to the webhook calls of one request so far. Create an empty one per request, and keep it for all of its runs.
#[derive(Clone, Debug, Default)]
pub struct WebhookAnswers {
    answers: BTreeMap<String, WebhookAnswer>,
    pub(crate) start: Option<RequestStart>,
}

/// Values that all runs of a request share, so that a review that is unchanged has an unchanged content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestStart {
    /// Time of the first run.
    pub(crate) time: Timestamp,
    /// Seed of generated values.
    pub(crate) seed: u64,
}

impl WebhookAnswers {
    /// Adds the answer to a call.
    pub fn add(&mut self, call: &WebhookCall, answer: WebhookAnswer) {
        self.answers.insert(call.id.clone(), answer);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&WebhookAnswer> {
        self.answers.get(id)
    }
}
