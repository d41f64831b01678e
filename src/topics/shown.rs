//! Topics and patterns as a person is shown them. MQTT allows nearly any character in a topic (1.5.4), also those that show nothing
//! or turn the text around them: with them a topic looks like another one, and who pastes it grants something else than was read.

use std::fmt::Write as _;

/// Whether some of a text's characters cannot be seen or change how others are seen.
pub fn has_invisible(text: &str) -> bool {
    text.contains(is_invisible)
}

/// A text with such characters escaped, as in `\u{202e}`; all others as they are.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) {
            write!(out, "{}", c.escape_default()).expect("writing to a string does not fail");
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters, all spaces but the usual one, and what Unicode gives the property `Default_Ignorable_Code_Point` (UAX 44)
/// or the general category Cf.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_all_else_is_as_it_was() {
        for plain in ["homeassistant/#", "a b/it's \"x\"\\", "客厅/灯", "é/e\u{301}", "-x/y", ""] {
            assert_eq!((shown(plain), has_invisible(plain)), (plain.to_owned(), false));
        }
        let hidden =
            "\u{200b}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{ad}\u{a0}\u{2028}\u{e0041}\n\u{1b}\u{85}";
        for c in hidden.chars() {
            let (topic, expected) = (format!("a/{c}b"), format!("a/{}b", c.escape_default()));
            assert!(has_invisible(&topic), "{expected}");
            assert_eq!(shown(&topic), expected);
        }
    }
}
