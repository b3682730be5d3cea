//! Comparison of numbers of different types, and Go's formatting of doubles.

use std::cmp::Ordering;

/// 2^63 and 2^64, the exclusive upper ends of int and uint.
pub(crate) const INT_END: f64 = 9_223_372_036_854_775_808.0;
pub(crate) const UINT_END: f64 = 18_446_744_073_709_551_616.0;

/// Compares a double with an integer without rounding the integer to a double.
pub(crate) fn compare_double_with_integer(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    let by_size = if double >= UINT_END {
        Ordering::Greater
    } else if double < -INT_END {
        Ordering::Less
    } else {
        // Within the range of i128 by the above; the fraction decides between equals.
        (double.floor() as i128).cmp(&whole)
    };
    let has_fraction = double.fract() != 0.0;
    Some(if by_size == Ordering::Equal && has_fraction { Ordering::Greater } else { by_size })
}

/// Formats a double as Go's `%g`: with an exponent for very large and very small numbers.
pub(crate) fn format_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // For the shortest format, Go decides about the exponent as for six digits.
    if number == 0.0 || (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::format_double;

    #[test]
    fn doubles_are_written_as_go_writes_them() {
        for (number, expected) in [
            (1.0, "1"),
            (0.5, "0.5"),
            (-2.25, "-2.25"),
            (1e21, "1e+21"),
            (1e-5, "1e-05"),
            (123_456_789.0, "1.23456789e+08"),
        ] {
            assert_eq!(format_double(number), expected);
        }
    }
}
