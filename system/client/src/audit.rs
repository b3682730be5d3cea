//! The audit log, keys without their secrets, and the version of the broker.

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use sindri_model::wire::{AuditLog, AuditLogListResponse, PakSummary};

use crate::client::{Call, Client};
use crate::error::ClientError;
use crate::percent_encode::percent_encode;

/// Filter of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Action, such as `stack.deleted`; a trailing `*` matches any ending.
    pub action: Option<String>,
    /// `admin`, `agent`, `generator` or `system`.
    pub actor_type: Option<String>,
    /// Id of the administrator, agent or generator.
    pub actor_id: Option<String>,
    /// Start of the time range, inclusive.
    pub from: Option<Timestamp>,
}

/// Part of the OpenAPI document with the version.
#[derive(Deserialize)]
struct Document {
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    version: String,
}

impl Client {
    /// Lists entries of the audit log, newest first.
    pub async fn list_audit_log(&self, query: &AuditQuery, limit: usize) -> Result<Vec<AuditLog>, ClientError> {
        let from = query.from.map(|time| time.to_string());
        let filters = [
            ("action", &query.action),
            ("actor_type", &query.actor_type),
            ("actor_id", &query.actor_id),
            ("from", &from),
        ];
        let mut path = format!("/admin/audit-logs?limit={limit}");
        for (name, value) in filters {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", percent_encode(value)));
            }
        }
        let page: AuditLogListResponse =
            self.fetch_json(Call::get(path, "list the audit log".to_owned()), StatusCode::OK).await?;
        Ok(page.logs)
    }

    /// Lists all keys without their secrets.
    pub async fn list_keys(&self) -> Result<Vec<PakSummary>, ClientError> {
        self.fetch_list("/paks", "list the keys").await
    }

    /// Reads the version of the broker, which needs no key.
    pub async fn get_broker_version(&self) -> Result<String, ClientError> {
        let call = Call::get_public("/docs/openapi.json".to_owned(), "read the version of the broker".to_owned());
        let document: Document = self.fetch_json(call, StatusCode::OK).await?;
        Ok(document.info.version)
    }
}
