//! What was measured, as a line and as JSON, in the shape that every area of figures has.

use serde_json::{Value, json};

/// What must hold of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Not less than this.
    AtLeast(f64),
    /// Not more than this.
    AtMost(f64),
    /// Nothing: the figure informs.
    None,
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
            Self::None => true,
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::AtLeast(bar) | Self::AtMost(bar) => Some(bar),
            Self::None => None,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::AtLeast(bar) => format!(">= {bar}"),
            Self::AtMost(bar) => format!("<= {bar}"),
            Self::None => "-".to_owned(),
        }
    }
}

/// Every figure so far. Each is shown as soon as it is known.
pub struct Sheet {
    area: &'static str,
    say: fn(String),
    figures: Vec<Value>,
    missing: usize,
}

impl Sheet {
    /// An empty sheet of one area, whose lines go to `say`.
    pub fn new(area: &'static str, say: fn(String)) -> Self {
        say(format!("{:<70} {:>12} {:>12}  holds", "figure", "measured", "bar"));
        Self { area, say, figures: Vec::new(), missing: 0 }
    }

    /// Adds what was measured.
    pub fn add(&mut self, name: &str, value: f64, unit: &str, bar: Bar) {
        let holds = bar.holds(value);
        let shown = format!("{} {unit}", digits(value));
        let verdict = match (bar, holds) {
            (Bar::None, _) => "-",
            (Bar::AtLeast(_) | Bar::AtMost(_), true) => "holds",
            (Bar::AtLeast(_) | Bar::AtMost(_), false) => "FALLS SHORT",
        };
        (self.say)(format!("{name:<70} {shown:>12} {:>12}  {verdict}", bar.shown()));
        let bar = bar.number();
        let area = self.area;
        self.figures
            .push(json!({"area": area, "name": name, "value": value, "unit": unit, "bar": bar, "holds": holds}));
    }

    /// Notes what could not be measured, and why.
    pub fn add_missing(&mut self, name: &str, reason: &str) {
        (self.say)(format!("{name:<70} could not be measured: {reason}"));
        let area = self.area;
        self.figures
            .push(json!({"area": area, "name": name, "value": null, "unit": null, "bar": null, "holds": false}));
        self.missing += 1;
    }

    /// How much could not be measured.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The figures as a list.
    pub fn to_json(self) -> Value {
        Value::Array(self.figures)
    }
}

/// The one in the middle, or what is between two; no number if there are none, which no bar takes for good.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(at(middle.wrapping_sub(1)), at(middle)) } else { at(middle) }
}

/// As many digits as say something.
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
    fn a_figure_has_the_shape_of_every_area_and_is_judged_by_its_bar() {
        let mut sheet = Sheet::new("broker", |_| ());
        sheet.add("fast", 0.5, "ratio", Bar::AtLeast(0.7));
        sheet.add("small", 20.0, "MB", Bar::AtMost(25.0));
        sheet.add("told", 1.0, "ms", Bar::None);
        sheet.add_missing("absent", "no server");
        assert_eq!(sheet.missing(), 1);
        let expected = json!([
            {"area": "broker", "name": "fast", "value": 0.5, "unit": "ratio", "bar": 0.7, "holds": false},
            {"area": "broker", "name": "small", "value": 20.0, "unit": "MB", "bar": 25.0, "holds": true},
            {"area": "broker", "name": "told", "value": 1.0, "unit": "ms", "bar": null, "holds": true},
            {"area": "broker", "name": "absent", "value": null, "unit": null, "bar": null, "holds": false},
        ]);
        assert_eq!(sheet.to_json(), expected);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the value is one of those that were given")]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn digits_follow_the_size() {
        assert_eq!([0.0, 0.1234, 12.345, 1234.5].map(digits), ["0", "0.123", "12.3", "1234"]);
    }
}
