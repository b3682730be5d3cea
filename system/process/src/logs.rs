//! Logging to standard error. Each line that belongs to a request carries the request's id.

use std::fmt;
use std::io;

use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Returns the id of the request that the current task serves, if any.
pub type RequestId = fn() -> Option<String>;

/// Initialises logging with values of [`crate::Setting::log_format`] and [`crate::Setting::log_level`].
pub fn init(format: &str, level: &str, request_id: RequestId) {
    let level: LevelFilter = level.parse().expect("the setting takes only valid levels");
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
