//! Logging to standard error. Each line that belongs to a request carries the request's id.

use std::fmt;
use std::io;

use sindri_traces::SPANS;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::trace_export::TraceExport;

/// Returns the id of the request that the current task serves, if any.
pub type RequestId = fn() -> Option<String>;

/// Initialises logging with values of [`crate::Setting::log_format`] and [`crate::Setting::log_level`], and the export of spans if
/// there is one.
pub fn init(format: &str, level: &str, request_id: RequestId, traces: Option<&TraceExport>) {
    let level: LevelFilter = level.parse().expect("the setting takes only valid levels");
    let Some(traces) = traces else { return init_lines(format, level, request_id) };
    let subscriber = tracing_subscriber::registry().with(traces.layer());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    match format {
        "off" => subscriber.init(),
        "json" => {
            let format = Format::default().json().flatten_event(true);
            let lines = lines.json().event_format(JsonLines { format, request_id });
            subscriber.with(lines.with_filter(lines_filter(level))).init();
        }
        _ => {
            let lines = lines.event_format(PrettyLines { format: Format::default().with_target(false), request_id });
            subscriber.with(lines.with_filter(lines_filter(level))).init();
        }
    }
}

/// Returns the filter of log lines, which have no part of the spans that are exported.
fn lines_filter(level: LevelFilter) -> Targets {
    Targets::new().with_default(level).with_target(SPANS, LevelFilter::OFF)
}

/// Initialises logging only: spans, whose level is trace, stay disabled.
fn init_lines(format: &str, level: LevelFilter, request_id: RequestId) {
    let lines = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    match format {
        "off" => {}
        "json" => {
            let format = Format::default().json().flatten_event(true);
            lines.json().event_format(JsonLines { format, request_id }).init();
        }
        _ => lines.event_format(PrettyLines { format: Format::default().with_target(false), request_id }).init(),
    }
}

/// Human-readable lines.
struct PrettyLines {
    format: Format,
    request_id: RequestId,
}

/// Lines in JSON.
struct JsonLines {
    format: Format<Json>,
    request_id: RequestId,
}

impl<S, N> FormatEvent<S, N> for PrettyLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        match (self.request_id)() {
            Some(id) => writeln!(writer, "{} request_id={id}", line.trim_end()),
            None => writer.write_str(&line),
        }
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        match ((self.request_id)(), line.trim_end().strip_suffix('}')) {
            // The id is serialized as a JSON string, which escapes quotes.
            (Some(id), Some(open)) => writeln!(writer, "{open},\"request_id\":{}}}", serde_json::Value::from(id)),
            (_, None) | (None, Some(_)) => writer.write_str(&line),
        }
    }
}
