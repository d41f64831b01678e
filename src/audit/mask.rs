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
    let mut short: String = text.chars().take(chars_max).collect();
    if short.len() < text.len() {
        short.pop();
        short.push('…');
    }
    short
}

/// What a person said, without what looks like a secret: as [`masked`], and without digits (also Chinese ones) that might be a
/// spoken code.
pub fn speech_masked(text: &str) -> String {
    codes_masked(&masked(text))
}

/// A text without what looks like a token or a password: a long run of letters and digits, and what follows `token=`.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if of_a_token(c) => run.push(c),
            other => {
                out.push_str(&run_masked(&run));
                run.clear();
                out.extend(other);
            }
        }
    }
    out
}

fn of_a_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/=%~".contains(c)
}

fn run_masked(run: &str) -> String {
    if let Some((before, after)) = run.split_once("token=").filter(|(_, after)| !after.is_empty()) {
        let _what_it_was = after;
        return format!("{before}token={MASK}");
    }
    let has = |test: fn(&char) -> bool| run.chars().any(|c| test(&c));
    let secret = run.len() >= SECRET_CHARS_MIN && has(char::is_ascii_digit) && has(|c: &char| c.is_ascii_alphabetic());
    if secret { MASK.to_owned() } else { run.to_owned() }
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
