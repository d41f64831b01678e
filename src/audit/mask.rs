//! What must not be kept is not written: tokens, passwords, codes inside of texts that models pass.

/// What stands for something that is not kept.
pub const MASK: &str = "***";

/// From how many characters on an unbroken run of a token's alphabet with letters and digits in it counts as a secret: a
/// device's password has 32 hex digits, tokens have more; no word of a person is so long.
const SECRET_CHARS_MIN: usize = 28;

/// From how many digits on a run counts as a code: spoken codes have four or more. A year inside a sentence goes with them.
const CODE_DIGITS_MIN: usize = 4;

/// A text, cut to so many characters.
pub fn bounded(text: &str, chars_max: usize) -> String {
    let mut short = text.to_owned();
    cut(&mut short, chars_max);
    short
}

/// The same in its place.
pub(super) fn cut(text: &mut String, chars_max: usize) {
    if text.len() <= chars_max {
        return;
    }
    let mut ends = text.char_indices().map(|(at, _)| at).skip(chars_max.saturating_sub(1));
    if let (Some(last), Some(_beyond)) = (ends.next(), ends.next()) {
        text.truncate(last);
        text.push('…');
    }
}

/// What a person said, without what looks like a secret: as [`masked`], and without digits (also Chinese ones) that might be a
/// spoken code.
pub fn speech_masked(text: &str) -> String {
    codes_masked(&masked(text))
}

/// A text without what looks like a token or a password: a long run of letters and digits, and what follows `token=`.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (run, others) = rest.split_at(rest.find(|c| !of_a_token(c)).unwrap_or(rest.len()));
        let (others, next) = others.split_at(others.find(of_a_token).unwrap_or(others.len()));
        push_masked(&mut out, run);
        out.push_str(others);
        rest = next;
    }
    out
}

fn of_a_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=' | '%' | '~')
}

/// Appends an unbroken run of a token's alphabet.
fn push_masked(out: &mut String, run: &str) {
    if let Some((before, _)) = run.split_once("token=").filter(|(_, after)| !after.is_empty()) {
        out.push_str(before);
        out.push_str("token=");
        return out.push_str(MASK);
    }
    let has = |test: fn(&u8) -> bool| run.bytes().any(|c| test(&c));
    let secret = run.len() >= SECRET_CHARS_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    out.push_str(if secret { MASK } else { run });
}

/// Digits of a code may be spoken with pauses: `4 7 1 1`, `4-7-1-1`.
fn codes_masked(text: &str) -> String {
    const CHINESE: &str = "零一二三四五六七八九幺两〇";
    let digit = |c: char| c.is_numeric() || CHINESE.contains(c);
    let mut out = String::with_capacity(text.len());
    let (mut run, mut digits) = (String::new(), 0);
    let end = |run: &mut String, digits: &mut usize, out: &mut String| {
        if *digits >= CODE_DIGITS_MIN {
            let rest = run.trim_end_matches([' ', '-', ',', '，']).len();
            out.push_str(MASK);
            out.push_str(&run[rest..]);
        } else {
            out.push_str(run);
        }
        run.clear();
        *digits = 0;
    };
    for c in text.chars() {
        if digit(c) {
            run.push(c);
            digits += 1;
        } else if digits > 0 && matches!(c, ' ' | '-' | ',' | '，') {
            run.push(c);
        } else {
            end(&mut run, &mut digits, &mut out);
            out.push(c);
        }
    }
    end(&mut run, &mut digits, &mut out);
    out
}
