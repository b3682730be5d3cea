//! Kubernetes quantities such as `1500m` and `2Gi`: parsing, arithmetic and canonical format.

use std::cmp::Ordering;

/// Error message of the API server for an invalid quantity.
pub const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Nano units per unit.
const ONE: i128 = 1_000_000_000;
/// Smaller amounts are rounded up to this one.
const SCALE_MIN: i32 = -9;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Suffix format of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity in nano units.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Quantity {
    /// Parses a quantity; `None` if it is invalid or too large.
    pub fn parse(text: &str) -> Option<Self> {
        let end =
            text.char_indices().find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || *at == 0 && "+-".contains(*c)));
        let (number, suffix) = text.split_at(end.map_or(text.len(), |(at, _)| at));
        let negative = number.starts_with('-');
        let digits = number.trim_start_matches(['+', '-']);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let mantissa: i128 =
            if whole.is_empty() && fraction.is_empty() { 0 } else { format!("0{whole}{fraction}").parse().ok()? };
        let scale = -i32::try_from(fraction.len()).ok()?;
        let (factor, exponent, form) = read_suffix(suffix)?;
        let nanos = scaled(mantissa.checked_mul(factor)?, scale + exponent - SCALE_MIN)?;
        Some(Self { nanos: if negative { -nanos } else { nanos }, form })
    }

    /// Returns zero.
    pub fn zero() -> Self {
        Self { nanos: 0, form: Form::Decimal }
    }

    /// Returns the sum, in the format of `self` unless that is zero.
    pub fn plus(self, other: Self) -> Self {
        let form = if self.nanos == 0 { other.form } else { self.form };
        Self { nanos: self.nanos.saturating_add(other.nanos), form }
    }

    /// Creates a quantity from an integer.
    pub fn of(number: i64) -> Self {
        Self { nanos: i128::from(number) * ONE, form: Form::Exponent }
    }

    /// Returns the difference, in the format of `self` unless that is zero.
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { nanos: other.nanos.saturating_neg(), form: other.form })
    }

    /// Returns the sign: -1, 0 or 1.
    pub fn signum(self) -> i64 {
        self.nanos.signum() as i64
    }

    /// Returns the integer value, if it is an integer that fits.
    pub fn whole(self) -> Option<i64> {
        (self.nanos % ONE == 0).then(|| i64::try_from(self.nanos / ONE).ok()).flatten()
    }

    /// Returns the nearest double.
    pub fn approximate(self) -> f64 {
        self.nanos as f64 / ONE as f64
    }

    /// Returns the canonical format of the API server: the largest suffix without a fraction.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        if self.form == Form::Binary && self.nanos % ONE == 0 && (self.nanos / ONE).abs() >= 1024 {
            let whole = self.nanos / ONE;
            let unit = BINARY.iter().rev().find(|(_, bits)| whole % (1_i128 << bits) == 0);
            return unit
                .map_or_else(|| whole.to_string(), |(name, bits)| format!("{}{name}", whole / (1_i128 << bits)));
        }
        let unit = DECIMAL.iter().rev().find_map(|(name, exponent)| {
            let size = 10_i128.checked_pow(u32::try_from(exponent - SCALE_MIN).ok()?)?;
            (self.nanos % size == 0).then(|| (self.nanos / size, *name, *exponent))
        });
        match (unit, self.form) {
            (Some((count, _, exponent)), Form::Exponent) if exponent != 0 => format!("{count}e{exponent}"),
            (Some((count, name, _)), _) => format!("{count}{name}"),
            (None, _) => self.nanos.to_string(),
        }
    }
}

fn read_suffix(suffix: &str) -> Option<(i128, i32, Form)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((1, *exponent, Form::Decimal));
    }
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((1_i128 << bits, 0, Form::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-18..=18).contains(&exponent).then_some((1, exponent, Form::Exponent))
}

/// Multiplies by a power of ten and rounds up.
fn scaled(value: i128, exponent: i32) -> Option<i128> {
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 { value.checked_mul(power) } else { Some(value.checked_add(power - 1)? / power) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_format_uses_the_largest_suffix() {
        for (text, expected) in [
            ("1000m", "1"),
            ("1", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("1024Mi", "1Gi"),
            ("1000Ki", "1000Ki"),
            ("2000", "2k"),
            ("0", "0"),
            ("-1", "-1"),
            ("1e3", "1e3"),
            ("100Mi", "100Mi"),
            ("512", "512"),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_quantities_are_rejected() {
        for text in ["", "much", "1x", "1.2.3", "e3", "--1", "1e99"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }
}
