//! The question before something is moved that can do harm (semantics 7.2): what would be done, as a question, and how it
//! can be agreed to. Nothing has moved, and the sentence says so first.

use std::time::Duration;

use super::{
    Facts, Naming, Rendered, of_refusal,
    operation::pick,
    speech::{amount, choices, spoken, the},
    together::said,
    unconfirmed::asked_state,
};
use crate::{
    names::Lang,
    property::{Confirm, Value},
    twin::words::{RefusalWord, Stage},
};

/// What is wished of one thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This value.
    To(Value),
    /// So much more, or less.
    By(f64),
    /// The other of two values.
    Other,
    /// That it does something.
    Action,
}

/// A question, with what is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// What could do harm, never empty.
    pub things: Vec<(Naming, Wanted)>,
    /// The group or the scene that it is a part of, and whether it is a scene.
    pub whole: Option<(String, bool)>,
    /// Whether the secret code has to be said.
    pub spoken: bool,
    /// What has to be pressed, by name.
    pub buttons: Vec<String>,
    /// Whether it was confirmed already, and only the press is missing.
    pub not_pressed: bool,
    /// The code of the question; with [`Self::spoken`] it stands in front of what the person says.
    pub code: Option<String>,
    /// How long the question is open.
    pub open_for: Duration,
}

impl Asking {
    /// How it is agreed to, as the configuration calls it.
    pub fn how(&self) -> Confirm {
        match (self.buttons.is_empty(), self.spoken) {
            (false, _) => Confirm::Press,
            (true, true) => Confirm::SpokenCode,
            (true, false) => Confirm::Ask,
        }
    }
}

/// Renders a question for the model to put to the person.
pub fn question(asking: &Asking, lang: Lang) -> Rendered {
    let word = RefusalWord::ConfirmationRequired;
    let (result, next) = of_refusal(word);
    let whole = asking.whole.as_ref().map(|(name, _)| name.clone());
    let names = || asking.things.iter().map(|(naming, _)| naming.device.clone()).collect();
    let facts = Facts {
        success: Some(false),
        outcome: Some(word.as_str()),
        stage: Some(Stage::Admission.as_str()),
        device: whole.or_else(|| asking.things.first().map(|(naming, _)| naming.device.clone())),
        danger: asking.whole.is_some().then(names),
        confirm: Some(asking.how().as_str()),
        code: asking.code.clone(),
        open_for_s: Some(asking.open_for.as_secs()),
        ..Facts::default()
    };
    let say = match lang {
        Lang::Zh => format!("还没有动：{}", body(asking, lang)),
        Lang::En => format!("Nothing has moved: {}", body(asking, lang)),
    };
    Rendered::new(result, next, say, Some(note(asking, lang)), facts, lang)
}

/// The same question, as a client shows it to the person itself.
pub fn form_text(asking: &Asking, lang: Lang) -> String {
    let body = body(asking, lang);
    let mut chars = body.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn body(asking: &Asking, lang: Lang) -> String {
    let wish = wish(asking, lang);
    let called = |name: &String| if lang == Lang::En { the(name, false) } else { name.clone() };
    let buttons = choices(&asking.buttons.iter().map(called).collect::<Vec<_>>(), lang);
    match (lang, asking.buttons.is_empty(), asking.spoken) {
        (Lang::Zh, true, false) => match &asking.whole {
            None => format!("现在真的要{wish}吗？"),
            Some((name, is_scene)) => format!("{}会{wish}，现在真的要吗？", said(name, *is_scene, lang)),
        },
        (Lang::En, true, false) => match &asking.whole {
            None => format!("do you really want {wish} now?"),
            Some((name, is_scene)) => format!("{} wants {wish}; really now?", the(&said(name, *is_scene, lang), false)),
        },
        (Lang::Zh, true, true) => format!("要{wish}，请说确认码。"),
        (Lang::En, true, true) => format!("for {wish}, say the confirmation code."),
        (Lang::Zh, false, false) => format!("要{wish}，请先按一下{buttons}，再说一声。"),
        (Lang::En, false, false) => format!("for {wish}, press {buttons} first, then say so."),
        (Lang::Zh, false, true) => format!("要{wish}，请先按一下{buttons}，再说确认码。"),
        (Lang::En, false, true) => format!("for {wish}, press {buttons} first, then say the confirmation code."),
    }
}

/// What would be done, as the end of "do you want".
fn wish(asking: &Asking, lang: Lang) -> String {
    if let [(naming, wanted)] = asking.things.as_slice() {
        return one(naming, wanted, lang);
    }
    let called = |naming: &Naming| if lang == Lang::En { the(&naming.spoken, false) } else { naming.spoken.clone() };
    let names: Vec<String> = asking.things.iter().map(|(naming, _)| called(naming)).collect();
    match lang {
        Lang::Zh => format!("动到{}", choices(&names, lang)),
        Lang::En => format!("{} moved", choices(&names, lang)),
    }
}

fn one(naming: &Naming, wanted: &Wanted, lang: Lang) -> String {
    let (n, object) = (&naming.spoken, the(&naming.spoken, false));
    let (full, full_en) = (naming.full(Lang::Zh), the(&naming.full(Lang::En), false));
    let hidden = naming.sensitive;
    match (wanted, lang) {
        (Wanted::To(Value::Bool(on)), _) if !hidden => pick_of(asked_state(naming, *on), lang),
        (Wanted::To(value), _) => {
            let said = Some(value).filter(|_| !hidden).and_then(|v| amount(v, naming.unit.as_deref(), lang));
            match lang {
                Lang::Zh => format!("把{full}设成{}", said.as_deref().unwrap_or("别的")),
                Lang::En => format!("{full_en} to be {}", said.as_deref().unwrap_or("another value")),
            }
        }
        (Wanted::By(by), Lang::Zh) if !hidden => format!("把{full}调{}", if *by < 0.0 { "低" } else { "高" }),
        (Wanted::By(by), Lang::En) if !hidden => format!("{full_en} to go {}", if *by < 0.0 { "down" } else { "up" }),
        (Wanted::By(_) | Wanted::Other, Lang::Zh) => format!("把{full}换成别的"),
        (Wanted::By(_) | Wanted::Other, Lang::En) => format!("{full_en} to change"),
        (Wanted::Action, Lang::Zh) => format!("让{n}{}", naming.what.as_deref().unwrap_or("动一下")),
        (Wanted::Action, Lang::En) => match naming.what.as_deref() {
            Some(what) => format!("{object} to do: {what}"),
            None => format!("{object} to act"),
        },
    }
}

fn pick_of((zh, en): (String, String), lang: Lang) -> String {
    match lang {
        Lang::Zh => zh,
        Lang::En => en,
    }
}

fn note(asking: &Asking, lang: Lang) -> String {
    let ask = pick(
        lang,
        "把问题说给用户，等用户亲口同意后再调 confirm_operation；code 不要念出来。",
        "Put the question to the user; call confirm_operation only after a clear yes; never read out the code.",
    );
    let spoken = pick(
        lang,
        "请用户说确认码，把用户说的原样作为 code 调 confirm_operation；不要自己编，不要用以前听到的。",
        "Ask the user for the code; pass on what the user says as code of confirm_operation; never make one up or reuse one.",
    );
    let press = pick(
        lang,
        "请用户先去按；按过以后再调 confirm_operation。",
        "The user has to press it first; call confirm_operation after that.",
    );
    let note = match asking.how() {
        Confirm::Ask | Confirm::None => ask,
        Confirm::SpokenCode => spoken,
        Confirm::Press => press,
    };
    match (&asking.code, asking.spoken, lang) {
        (Some(code), true, Lang::Zh) => format!("{note}code 写成“{code} 用户说的”。"),
        (Some(code), true, Lang::En) => format!("{note} The code is \"{code} WHAT THE USER SAYS\"."),
        (_, _, _) => note.to_owned(),
    }
}

/// The name of a button, for the ear.
pub fn button(name: &str, lang: Lang) -> String {
    spoken(name, lang)
}
