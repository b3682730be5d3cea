//! Values as `kubectl` prints them: ages and selectors.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::fields::{array_at, string_at};

/// Formats an age as `kubectl` does.
pub(crate) fn age(now: Timestamp, created: &str) -> String {
    let Ok(created) = created.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = now.duration_since(created).as_secs().max(0);
    let pair = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

/// Formats a label selector as `kubectl` does.
pub(crate) fn selector(selector: Option<&Value>) -> String {
    let labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in selector.map(|selector| array_at(selector, "/matchExpressions")).unwrap_or_default() {
        let key = string_at(expression, "/key");
        let values: Vec<&str> = array_at(expression, "/values").iter().filter_map(Value::as_str).collect();
        parts.push(match string_at(expression, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.sort();
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_does() {
        let created = "2026-01-01T00:00:00Z";
        let start: Timestamp = created.parse().expect("valid");
        for (seconds, expected) in
            [(5, "5s"), (119, "119s"), (150, "2m30s"), (3_600, "60m"), (12_600, "3h30m"), (90_000, "25h")]
        {
            let now = start + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age(now, created), expected);
        }
    }
}
