//! Panics: one in the work of a stack is a failure of that stack, and of nothing else.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

/// Runs work to its end; a panic becomes an error with its message.
///
/// State that the work may have left half changed must be discarded after an error.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| describe(&*payload))
}

/// The same for work that does not wait.
pub fn catch_panic_of<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| describe(&*payload))
}

fn describe(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    format!("internal error: {}", text.as_deref().unwrap_or("a panic without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_message() {
        let number = 7;
        let panicked = catch_panic(async { assert_ne!(number, 7, "seven is not allowed") }).await.unwrap_err();
        assert!(panicked.starts_with("internal error: ") && panicked.contains("seven is not allowed"), "{panicked}");
        assert_eq!(catch_panic(async { 1 }).await, Ok(1));
        assert_eq!(catch_panic_of(|| -> u8 { panic!("no") }), Err("internal error: no".to_owned()));
    }
}
