//! Settings: reads them again.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sindri_model::wire::ConfigReloadResponse;

use crate::api::http::error_response::ErrorResponse;
use crate::broker::Broker;

pub(crate) async fn reload(State(broker): State<Broker>) -> Result<Json<ConfigReloadResponse>, ErrorResponse> {
    let Some(reloaded) = broker.reload() else {
        let message = "this broker does not read its settings from anywhere";
        return Err(ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "reload_unavailable", message));
    };
    let invalid = |error: String| ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_config", error);
    let changes = reloaded.map_err(invalid)?;
    let applied = changes.iter().filter(|change| change.applied).count();
    let message = format!("{applied} settings were reloaded, and {} need a restart", changes.len() - applied);
    Ok(Json(ConfigReloadResponse { success: true, reloaded_at: broker.clock.now(), message: Some(message), changes }))
}
