//! One call of the operator to the broker, with its result.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use sindri_client::Client;

use super::error::StepError;
use super::interface::Environment;
use crate::hosts::OperatorJob;

/// Lets the operator call the broker and returns the result.
pub fn call_broker<T, F>(
    environment: &mut dyn Environment,
    call: impl FnOnce(Client) -> F + Send + 'static,
) -> Result<T, StepError>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let slot: Arc<Mutex<Option<T>>> = Arc::default();
    let (filled, checked) = (slot.clone(), slot.clone());
    let is_filled = |slot: &Mutex<Option<T>>| slot.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let job: OperatorJob = Box::new(move |client| {
        let call = call(client);
        Box::pin(async move {
            let result = call.await;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        })
    });
    environment.run_job(job, &move || is_filled(&checked))?;
    let result = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.ok_or_else(|| StepError::Failed("the operator's call did not end".to_owned()))
}
