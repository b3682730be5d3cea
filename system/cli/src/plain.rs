//! Text of other programs without the characters that control a terminal: escape sequences hide lines, and marks of
//! direction show them in another order.

/// Replaces every control character, line breaks included.
pub(crate) fn to_plain_line(text: &str) -> String {
    text.chars().map(|character| if is_hidden(character) { ' ' } else { character }).collect()
}

/// Replaces every control character except line breaks.
pub(crate) fn to_plain_text(text: &str) -> String {
    let to_shown = |character: char| if character != '\n' && is_hidden(character) { ' ' } else { character };
    text.chars().map(to_shown).collect()
}

/// Returns true for control characters and for marks that change the direction of the text after them.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_controls_the_terminal_and_a_text_keeps_its_lines() {
        let text = "delete a\u{1b}[2K\n\u{9b}1Gkeep ü\u{202e}b\r\n";
        assert_eq!(to_plain_text(text), "delete a [2K\n 1Gkeep ü b \n");
        assert_eq!(to_plain_line(text), "delete a [2K  1Gkeep ü b  ");
    }
}
