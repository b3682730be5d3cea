//! Text from elsewhere, such as annotations that any client of a cluster may set, as it is shown to people.

/// Returns true for a character that changes how a terminal shows the text around it: a control character, a line separator, or
/// one that changes the direction of writing.
pub fn is_unprintable(character: char) -> bool {
    let changes_direction = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') || changes_direction
}

/// Returns a text in one line, with spaces for characters that are not printable.
pub fn to_printable(text: &str) -> String {
    text.replace(is_unprintable, " ")
}

/// Returns a text of several lines, with spaces for the other characters that are not printable.
pub fn to_printable_lines(text: &str) -> String {
    text.replace(|character: char| character != '\n' && is_unprintable(character), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_change_the_text_around_them_are_replaced() {
        let text = "ä 字 🙂 a\u{1b}[8mb\nc\td\u{202e}e\u{2028}f\u{9b}g";
        assert_eq!(to_printable(text), "ä 字 🙂 a [8mb c d e f g");
        assert_eq!(to_printable_lines(text), "ä 字 🙂 a [8mb\nc d e f g");
    }
}
