//! Measured values with the bars that they must meet, printed as a table and written as JSON.

use serde_json::{Value, json};

/// Limit that a figure must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Lower limit.
    AtLeast(f64),
    /// Upper limit.
    AtMost(f64),
    /// No limit: the figure is only reported.
    None,
}

impl Bar {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
            Self::None => true,
        }
    }

    fn limit(self) -> Option<f64> {
        match self {
            Self::AtLeast(bar) | Self::AtMost(bar) => Some(bar),
            Self::None => None,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AtLeast(bar) => format!(">= {bar}"),
            Self::AtMost(bar) => format!("<= {bar}"),
            Self::None => "-".to_owned(),
        }
    }
}

/// Figures of one area so far. Each is printed as soon as it is added.
pub struct Figures {
    area: &'static str,
    print: fn(String),
    measured: Vec<Value>,
    missing: usize,
}

impl Figures {
    /// Prints the head of the table with `print`, as all later lines.
    pub fn new(area: &'static str, print: fn(String)) -> Self {
        print(format!("{:<70} {:>12} {:>12}  holds", "figure", "measured", "bar"));
        Self { area, print, measured: Vec::new(), missing: 0 }
    }

    /// Adds a measured value.
    pub fn add(&mut self, name: &str, value: f64, unit: &str, bar: Bar) {
        let holds = bar.is_met_by(value);
        let shown = format!("{} {unit}", digits(value));
        let verdict = match (bar, holds) {
            (Bar::None, _) => "-",
            (Bar::AtLeast(_) | Bar::AtMost(_), true) => "holds",
            (Bar::AtLeast(_) | Bar::AtMost(_), false) => "FALLS SHORT",
        };
        (self.print)(format!("{name:<70} {shown:>12} {:>12}  {verdict}", bar.describe()));
        let bar = bar.limit();
        let area = self.area;
        self.measured
            .push(json!({"area": area, "name": name, "value": value, "unit": unit, "bar": bar, "holds": holds}));
    }

    /// Adds a figure or part that could not be measured, with the reason.
    pub fn add_missing(&mut self, name: &str, reason: &str) {
        (self.print)(format!("{name:<70} could not be measured: {reason}"));
        let area = self.area;
        self.measured
            .push(json!({"area": area, "name": name, "value": null, "unit": null, "bar": null, "holds": false}));
        self.missing += 1;
    }

    /// Number of figures and parts that could not be measured.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Converts the figures to the list that `--json` writes.
    pub fn into_json(self) -> Value {
        Value::Array(self.measured)
    }
}

/// Returns the median. Without values it is NaN, which meets no bar.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) } else { at(middle) }
}

/// Formats a value with three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 10.0 => format!("{value:.3}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_becomes_json_with_the_verdict_of_its_bar() {
        let mut figures = Figures::new("broker", |_| ());
        figures.add("fast", 0.5, "ratio", Bar::AtLeast(0.7));
        figures.add("small", 20.0, "MB", Bar::AtMost(25.0));
        figures.add("reported", 1.0, "ms", Bar::None);
        figures.add_missing("absent", "no server");
        assert_eq!(figures.missing(), 1);
        let expected = json!([
            {"area": "broker", "name": "fast", "value": 0.5, "unit": "ratio", "bar": 0.7, "holds": false},
            {"area": "broker", "name": "small", "value": 20.0, "unit": "MB", "bar": 25.0, "holds": true},
            {"area": "broker", "name": "reported", "value": 1.0, "unit": "ms", "bar": null, "holds": true},
            {"area": "broker", "name": "absent", "value": null, "unit": null, "bar": null, "holds": false},
        ]);
        assert_eq!(figures.into_json(), expected);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the value is one of those that were given")]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn digits_depend_on_the_magnitude() {
        assert_eq!([0.0, 0.1234, 12.345, 1234.5].map(digits), ["0", "0.123", "12.3", "1234"]);
    }
}
