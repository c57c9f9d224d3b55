//! Numbers as Redis reads and writes them.

use std::ops::Range;

use crate::failure::{Failure, NO_FLOAT, NO_INTEGER};

/// Reads a 64-bit integer. Redis rejects `+1`, `01` and `-0`, which Rust accepts.
pub(crate) fn integer(text: &[u8]) -> Result<i64, Failure> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_negative = digits.len() < text.len();
    match digits {
        [b'0'] if !is_negative => return Ok(0),
        [b'1'..=b'9', ..] => {}
        _ => return Err(NO_INTEGER),
    }
    // The negative numbers include that of the greatest amount.
    let add = |number: i64, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        number.checked_mul(10)?.checked_sub(i64::from(digit))
    };
    let number = digits.iter().try_fold(0, add).ok_or(NO_INTEGER)?;
    match is_negative {
        true => Ok(number),
        false => number.checked_neg().ok_or(NO_INTEGER),
    }
}

/// Returns the ranks between two indices, both included. Negative indices count from the end.
pub(crate) fn ranks(start: i64, stop: i64, length: usize) -> Range<usize> {
    let length = length as i64;
    let from_end = |index: i64| if index < 0 { index + length } else { index };
    let start = from_end(start).max(0);
    let end = from_end(stop).saturating_add(1).min(length);
    if start < end {
        start as usize..end as usize
    } else {
        0..0
    }
}

/// Appends an integer in decimal.
pub(crate) fn write(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Reads a floating-point number that is not NaN.
pub(crate) fn float(text: &[u8]) -> Result<f64, Failure> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number
        .filter(|number: &f64| !number.is_nan())
        .ok_or(NO_FLOAT)
}

/// Significant digits of a double in a reply.
const DIGITS: i32 = 17;

/// Writes a number as C does with `%.17g`, and infinities as Redis does.
pub(crate) fn text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let is_short_integer = number.fract() == 0.0 && number.abs() < 1e15;
    if is_short_integer && (number != 0.0 || number.is_sign_positive()) {
        return (number as i64).to_string();
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = (DIGITS - 1 - exponent) as usize;
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_by_printf() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-17.5, "-17.5"),
            (0.1, "0.10000000000000001"),
            (1e15, "1000000000000000"),
            (1_700_000_000_000_001.5, "1700000000000001.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn integers_are_written_in_decimal() {
        for number in [0, 7, -10, 1_234_567, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
            assert_eq!(integer(&out), Ok(number));
        }
    }

    #[test]
    fn only_canonical_integers_are_read() {
        assert_eq!(integer(b"0"), Ok(0));
        assert_eq!(integer(b"-9223372036854775808"), Ok(i64::MIN));
        for wrong in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "1 ",
            "9223372036854775808",
            "1.0",
        ] {
            assert_eq!(integer(wrong.as_bytes()), Err(NO_INTEGER), "{wrong}");
        }
    }
}
