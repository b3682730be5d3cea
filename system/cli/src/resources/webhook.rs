//! Webhook subscriptions and deliveries.

use sindri_model::wire::{WebhookDelivery, WebhookResponse};

use crate::output::{Cell, Column, Resource, Style};

impl Resource for WebhookResponse {
    const KIND: &'static str = "webhook";
    const NONE: &'static str =
        "the key can read no webhook: sindri webhook create NAME --url URL --event TYPE creates one";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |webhook: &Self| Cell::text(&webhook.name)),
            Column::new("STATUS", |webhook: &Self| match webhook.enabled {
                true => Cell::text("enabled").styled(Style::Good),
                false => Cell::text("disabled").styled(Style::Warning),
            }),
            Column::new("EVENTS", |webhook: &Self| Cell::text(webhook.event_types.join(","))),
            Column::wide("SENT BY", |webhook: &Self| match &webhook.target_labels {
                Some(labels) => Cell::text(format!("agents with {}", labels.join(","))),
                None => Cell::text("broker"),
            }),
            Column::wide("RETRIES", |webhook: &Self| Cell::text(webhook.max_retries)),
            Column::wide("TIMEOUT", |webhook: &Self| Cell::text(format!("{} s", webhook.timeout_seconds))),
            Column::wide("CREATED BY", |webhook: &Self| Cell::optional(webhook.created_by.as_ref())),
            Column::wide("CREATED", |webhook: &Self| Cell::time(webhook.created_at)),
            Column::new("ID", |webhook: &Self| Cell::text(webhook.id)),
        ]
    }
}

impl Resource for WebhookDelivery {
    const KIND: &'static str = "delivery";
    const NONE: &'static str = "there is no message";

    fn name(&self) -> String {
        self.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("CREATED", |delivery: &Self| Cell::time(delivery.created_at)),
            Column::new("EVENT", |delivery: &Self| Cell::text(&delivery.event_type)),
            Column::new("STATUS", |delivery: &Self| {
                let style = match delivery.status.as_str() {
                    "success" => Style::Good,
                    "failed" => Style::Warning,
                    "dead" => Style::Bad,
                    _ => Style::Plain,
                };
                Cell::text(&delivery.status).styled(style)
            }),
            Column::new("ATTEMPTS", |delivery: &Self| Cell::text(delivery.attempts)),
            Column::wide("NEXT ATTEMPT", |delivery: &Self| match delivery.next_retry_at {
                Some(time) => Cell::time(time),
                None => Cell::text("-"),
            }),
            Column::wide("ID", |delivery: &Self| Cell::text(delivery.id)),
            Column::new("ERROR", |delivery: &Self| Cell::text(delivery.last_error.as_deref().unwrap_or_default())),
        ]
    }
}
