//! Export of spans to a collector by OTLP over HTTP.
//!
//! Spans are queued and sent in batches by a thread of its own. The queue is bounded: if the collector is slow or does not
//! respond, further spans are dropped, and requests never wait.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use sindri_client::{BoundedHttp, Limits, TrustError};
use sindri_traces::{SPANS, TraceIds};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// Limit on spans that wait to be sent.
const QUEUE_MAX: usize = 2_048;
/// Limit on spans in one message.
const BATCH_MAX: usize = 256;
/// Longest time for which a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(2);
/// Time limit of one message.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of sending the last spans when the process ends.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Limit on the response of the collector.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Path of a collector whose URL has none.
const TRACES_PATH: &str = "/v1/traces";

/// The export of traces cannot start.
#[derive(Debug, Error)]
pub enum TraceExportError {
    /// The certificates that the machine trusts cannot be read.
    #[error("traces cannot be exported: {0}")]
    Trust(#[from] TrustError),
    /// The thread cannot be started.
    #[error("traces cannot be exported: {0}")]
    Runtime(#[from] io::Error),
    /// The exporter cannot be built.
    #[error("traces cannot be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// A running export.
pub struct TraceExport {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl TraceExport {
    /// Starts the export of a program's spans to a collector, whose URL was checked as a setting.
    pub fn start(endpoint: &str, service: &'static str, version: &'static str) -> Result<Self, TraceExportError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(add_path(endpoint))
            .with_timeout(SEND_TIMEOUT)
            .with_http_client(CollectorClient::new(endpoint)?)
            .build()?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let version = opentelemetry::KeyValue::new("service.version", version);
        let resource = Resource::builder_empty().with_service_name(service).with_attribute(version).build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_id_generator(TraceIds::default())
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .build();
        Ok(Self { provider, service })
    }

    /// Returns the layer that records spans. Log lines are not part of it.
    pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_context_activation(false)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_filter(Targets::new().with_target(SPANS, LevelFilter::TRACE))
    }

    /// Sends the spans that wait, for a limited time.
    pub fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(END_TIMEOUT) {
            tracing::debug!("the last spans could not be exported: {error}");
        }
    }
}

/// Adds the path of the OTLP specification to a URL that has none.
fn add_path(endpoint: &str) -> String {
    let has_path = endpoint.parse::<Uri>().is_ok_and(|uri| uri.path().len() > 1);
    if has_path { endpoint.to_owned() } else { format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/')) }
}

/// HTTP client of the thread that sends. It has a runtime of its own, because that thread is outside of the process's.
struct CollectorClient {
    runtime: Runtime,
    http: BoundedHttp,
    endpoint: String,
    has_failed: AtomicBool,
}

impl CollectorClient {
    fn new(endpoint: &str) -> Result<Self, TraceExportError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let limits = Limits { deadline: SEND_TIMEOUT, response_bytes_max: RESPONSE_BYTES_MAX };
        let http = BoundedHttp::new(endpoint, limits)?;
        Ok(Self { runtime, http, endpoint: endpoint.to_owned(), has_failed: AtomicBool::new(false) })
    }

    /// Writes a log line when the collector begins to fail, and when it works again.
    fn log_change(&self, result: &Result<Response<Bytes>, String>) {
        let error = match result {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("status {}", response.status())),
            Err(error) => Some(error.clone()),
        };
        let (had_failed, endpoint) = (self.has_failed.swap(error.is_some(), Ordering::Relaxed), &self.endpoint);
        match error {
            Some(error) if !had_failed => {
                tracing::warn!("traces cannot be sent to {endpoint} and are dropped: {error}")
            }
            None if had_failed => tracing::info!("traces are sent to {endpoint} again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Blocks the thread that sends, and nothing else.
        let result = self.runtime.block_on(self.http.send(request));
        self.log_change(&result);
        result.map_err(Into::into)
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollectorClient({})", self.endpoint)
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn the_path_of_the_specification_is_added_to_a_url_without_one() {
        for (endpoint, expected) in [
            ("http://a:4318", "http://a:4318/v1/traces"),
            ("http://a:4318/", "http://a:4318/v1/traces"),
            ("https://a/otlp/v1/traces", "https://a/otlp/v1/traces"),
        ] {
            assert_eq!(add_path(endpoint), expected);
        }
    }

    #[test]
    fn a_collector_that_does_not_respond_delays_nothing() {
        // Connections are accepted by the system, and nothing is ever read from them.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", silent.local_addr().unwrap());
        let export = TraceExport::start(&endpoint, "test", "1").unwrap();
        let started = tokio::time::Instant::now();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(export.layer()), || {
            for number in 0..20 * QUEUE_MAX {
                let _span = tracing::trace_span!(target: SPANS, "work", number).entered();
            }
        });
        assert!(started.elapsed() < SEND_TIMEOUT, "{:?}", started.elapsed());
        let started = tokio::time::Instant::now();
        export.end();
        assert!(started.elapsed() < 2 * END_TIMEOUT, "{:?}", started.elapsed());
    }
}
