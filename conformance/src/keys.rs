//! Access keys in what processes say: found, and never passed on.

/// How every access key begins.
const KEY_START: &str = "brokkr_";

/// The key in a text, if there is one.
pub fn key_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| word.starts_with(KEY_START))
}

/// A line as it may be shown.
pub fn hide_keys(line: &str) -> String {
    let hidden = |word: &str| if word.starts_with(KEY_START) { format!("{KEY_START}…") } else { word.to_owned() };
    line.split(' ').map(hidden).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_shown() {
        let line = "generator default (7), its key, shown this once: brokkr_BRabc_secret";
        assert_eq!(hide_keys(line), "generator default (7), its key, shown this once: brokkr_…");
        assert_eq!(key_in(line), Some("brokkr_BRabc_secret"));
    }
}
