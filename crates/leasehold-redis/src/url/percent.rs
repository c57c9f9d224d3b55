use percent_encoding::percent_decode_str;

/// Decodes the percent-encoded bytes of a part of a URL.
pub(super) fn decoded(text: &str) -> Result<String, String> {
    let bytes = percent_decode_str(text).decode_utf8();
    Ok(bytes
        .map_err(|_| "a percent-encoded part is not UTF-8")?
        .into_owned())
}
