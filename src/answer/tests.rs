use std::{sync::Arc, time::Duration};

use proptest::{prelude::*, sample::select};

use super::*;
use crate::{
    authz::Style,
    property::{DeviceId, Evidence, ValueError},
    twin::words::{
        Attribution, Measured, OpId, Outcome, Presence, Reading, Reason, Refusal, RefusalWord, Reply, Settled, Stage,
        StateReport, Trust,
    },
};

mod random;

use random::{long_name, owners_name, reading, refusals, settled};

const ROLES: [Role; 11] = [
    Role::Light,
    Role::Socket,
    Role::Lock,
    Role::Door,
    Role::Blind,
    Role::Valve,
    Role::Heater,
    Role::Fan,
    Role::Pump,
    Role::Sensor,
    Role::Other,
];
const EVIDENCE: [Evidence; 6] =
    [Evidence::None, Evidence::Sent, Evidence::Received, Evidence::Firmware, Evidence::Pin, Evidence::Sensor];
const LANGS: [Lang; 2] = [Lang::En, Lang::Zh];

/// A name that no sentence contains by itself, so that it can be taken out before the rules are checked.
const NAME_ZH: &str = "甲乙丙";
const NAME_EN: &str = "qqq";

fn name(lang: Lang) -> &'static str {
    match lang {
        Lang::Zh => NAME_ZH,
        Lang::En => NAME_EN,
    }
}

fn naming(role: Role, lang: Lang) -> Naming {
    Naming {
        device: name(lang).into(),
        spoken: name(lang).into(),
        role,
        unit: Some("°C".into()),
        what: None,
        is_action: false,
        level: 0,
        sensitive: false,
    }
}

/// What an answer may be about: a switch, a number or mode with or without a word of its own, an action.
fn about(naming: Naming, about: usize, lang: Lang) -> Naming {
    let what = |name| terms::property(name, lang);
    match about {
        0 => naming,
        1 => Naming { what: what("brightness"), ..naming },
        2 => Naming { what: what("colour_temperature"), unit: None, ..naming },
        3 => Naming { what: what("frobnication"), ..naming },
        4 => naming.about_action("press", Role::Door, lang),
        _ => naming.about_action("frobnicate", Role::Other, lang),
    }
}

/// Rule 2, over the sentence without the name.
fn completed_form(say: &str) -> Option<&'static str> {
    const ZH: [&str; 9] = ["已打开", "已经打开", "打开了", "关上了", "已关", "成功", "完成", "好的", "搞定"];
    const EN: [&str; 5] = ["done", "turned on", "is on now", "success", "ok"];
    let lower = say.to_lowercase();
    let words = format!(" {} ", lower.replace(|c: char| !c.is_ascii_alphabetic(), " "));
    ZH.into_iter().find(|f| say.contains(f)).or_else(|| EN.into_iter().find(|f| words.contains(&format!(" {f} "))))
}

/// Rule 1: how a sentence that is not confirmed may begin.
fn verdict_first(say: &str) -> bool {
    const OPENINGS: [&str; 21] = [
        "不确定",
        "不知道",
        "没做成",
        "没稳住",
        "没按这次的来",
        "没有",
        "还没",
        "更正",
        "只做了一部分",
        "有",
        "Not ",
        "Nothing ",
        "It failed",
        "It did not hold",
        "Overtaken",
        "Refused",
        "Correction",
        "Only part",
        "There are",
        "No ",
        "Not",
    ];
    OPENINGS.iter().any(|o| say.starts_with(o))
}

/// By how much the figures in a sentence are longer than an everyday one of four characters (`21.5`).
fn long_figures(say: &str) -> usize {
    let figures = say.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    figures.map(|figure| figure.len().saturating_sub(4)).sum()
}

fn check(answer: &Rendered, name: &str, lang: Lang) {
    let say = &answer.say;
    assert!(!say.is_empty());
    if answer.result != ResultWord::Confirmed {
        assert_eq!(completed_form(&say.replace(name, "")), None, "{say}");
        assert!(verdict_first(say), "{say}");
    }
    let without = say.replace(name, "");
    assert!(!without.contains(['(', ')', '（', '）', '"', '“', '”', '「', '」', '[', ']', '{', '\n']), "{say}");
    assert!(!without.contains(" ms") && !without.contains("毫秒"), "{say}");
    if lang == Lang::Zh {
        let foreign = without.chars().filter(char::is_ascii_alphabetic).count();
        assert!(foreign == 0, "{say}");
    }
    let limit = match (lang, answer.result) {
        (Lang::En, _) => 140,
        (Lang::Zh, ResultWord::Confirmed) => 30,
        (Lang::Zh, _) => 60,
    };
    // What is said beside "confirmed" is not everyday: a correction, or a scene that counts as done without a member.
    let correction = if say.starts_with("更正") || say.contains("该做的都") { 60 } else { limit };
    assert!(say.chars().count() <= limit.max(correction) + long_figures(say), "{} {say}", say.chars().count());
    let success = answer.structured.get("success").and_then(Json::as_bool);
    assert!(success != Some(true) || answer.result == ResultWord::Confirmed);
    assert_eq!(answer.is_error, matches!(answer.result, ResultWord::Failed | ResultWord::Unconfirmed));
    assert_eq!(answer.structured.get("result").and_then(Json::as_str), Some(answer.result.as_str()));
    assert_eq!(answer.structured.get("say").and_then(Json::as_str), Some(say.as_str()));
    let text = answer.text();
    assert!(serde_json::from_str::<Json>(&text).is_err(), "a text that is an object would be taken apart by a relay");
    let line = text.lines().nth(1).expect("the second line is the facts");
    let facts: Json = serde_json::from_str(line).expect("compact json");
    assert_eq!(facts.get("result"), answer.structured.get("result"));
}

/// The state of a device of so many properties, just asked.
fn report(readings: Vec<Reading>) -> StateReport {
    StateReport {
        device: DeviceId::new("lamp").expect("an id"),
        presence: Presence::Online,
        last_heard: None,
        readings: readings.into_iter().enumerate().map(|(i, r)| (Arc::from(format!("p{i}")), r)).collect(),
        moving: Vec::new(),
        reverted: Vec::new(),
        held: Vec::new(),
        amended: Vec::new(),
        asked_now: true,
    }
}

proptest! {
    #[test]
    fn s8_3_an_operations_sentence_claims_no_more_than_its_result(
        settled in settled(), role in select(ROLES.to_vec()), lang in select(LANGS.to_vec()), of in 0..6_usize,
    ) {
        let answer = operation(&settled, &about(naming(role, lang), of, lang), lang);
        check(&answer, name(lang), lang);
        let success = answer.structured["success"].as_bool().expect("an operation says success");
        if success {
            prop_assert!(matches!(settled.outcome, Outcome::Converged | Outcome::Already | Outcome::Clamped));
        }
    }

    #[test]
    fn s3_5_no_success_rests_on_less_than_the_devices_own_word(mut settled in settled(), lang in select(LANGS.to_vec())) {
        settled.outcome = Outcome::Converged;
        (settled.late_success, settled.reverted) = (false, false);
        let answer = operation(&settled, &naming(Role::Light, lang), lang);
        prop_assert_eq!(answer.structured["success"].as_bool(), Some(settled.confirmed_by >= Evidence::Firmware));
    }

    #[test]
    fn a_light_is_called_lit_only_by_a_sensor(mut settled in settled(), lang in select(LANGS.to_vec())) {
        (settled.wish, settled.late_success, settled.reverted) = (Some(Value::Bool(true)), false, false);
        let answer = operation(&settled, &naming(Role::Light, lang), lang);
        let lit = answer.say.contains("亮了") || answer.say.contains(" lit");
        prop_assert!(!lit || settled.confirmed_by == Evidence::Sensor, "{}", answer.say);
    }

    #[test]
    fn s8_3_a_refusal_is_never_a_success(
        refused in refusals(), role in select(ROLES.to_vec()), lang in select(LANGS.to_vec()), known in any::<bool>(),
        of in 0..6_usize,
    ) {
        let naming = about(naming(role, lang), of, lang);
        let answer = refusal(&refused, known.then_some(&naming), lang);
        prop_assert_eq!(answer.structured["success"].as_bool(), Some(false));
        prop_assert_eq!(answer.structured["stage"].as_str(), Some("admission"));
        // Names of other devices are spoken as their owners wrote them.
        let others = ["strip", "study", "a"].iter().fold(answer.say.clone(), |say, word| match lang {
            Lang::Zh => say.replace(word, ""),
            Lang::En => say,
        });
        check(&Rendered { say: others.clone(), structured: {
            let mut s = answer.structured.clone();
            s["say"] = others.into();
            s
        }, ..answer }, name(lang), lang);
    }

    #[test]
    fn s7_1_together_is_done_only_if_every_required_member_is(
        members in prop::collection::vec((settled(), prop::option::weighted(0.3, refusals()), prop::bool::weighted(0.8)), 1..12),
        role in select(ROLES.to_vec()), lang in select(LANGS.to_vec()), is_scene in any::<bool>(),
    ) {
        let members: Vec<MemberReply> = members
            .into_iter()
            .map(|(settled, refused, required)| MemberReply {
                naming: naming(role, lang),
                required,
                reply: refused.map_or_else(|| Reply::Settled(Box::new(settled)), Reply::Refused),
            })
            .collect();
        let answer = together(name(lang), is_scene, &members, lang);
        check(&answer, name(lang), lang);
        let alone = |m: &MemberReply| reply(&m.reply, &m.naming, lang).structured["success"] == true;
        let confirmed = members.iter().filter(|m| alone(m)).count();
        let done = confirmed > 0 && members.iter().filter(|m| m.required).all(alone);
        prop_assert_eq!(answer.structured["success"].as_bool(), Some(done));
        prop_assert_eq!(answer.result == ResultWord::Partly, !done && confirmed > 0);
        prop_assert_eq!(answer.structured["confirmed"].as_u64(), Some(confirmed as u64));
        let told = answer.structured["not_confirmed"].as_array().map_or(0, Vec::len);
        let more = answer.structured["more"].as_u64().unwrap_or(0);
        prop_assert!(told <= MEMBER_ROWS_MAX && told as u64 + more == (members.len() - confirmed) as u64);
    }

    #[test]
    fn a_state_is_said_as_present_only_if_it_is_fresh(
        readings in prop::collection::vec(reading(), 0..4), asked_now in any::<bool>(), online in any::<bool>(),
        lang in select(LANGS.to_vec()),
    ) {
        let presence = if online { Presence::Online } else { Presence::Offline };
        let report = StateReport { presence, asked_now, ..report(readings) };
        let answer = state(&report, None, &naming(Role::Other, lang), lang);
        prop_assert!(answer.structured.get("success").is_none());
        prop_assert_eq!(answer.result == ResultWord::Confirmed, answer.structured["trust"] == "now");
        prop_assert!(answer.result == ResultWord::Confirmed || verdict_first(&answer.say), "{}", answer.say);
        prop_assert!(answer.result == ResultWord::Confirmed || !answer.say.contains("现在是"), "{}", answer.say);
    }

    #[test]
    fn an_endpoints_answer_has_one_kib_and_keeps_its_sentence(
        what in 0..5_usize, settled in settled(), refused in refusals(), lang in select(LANGS.to_vec()),
        label in long_name(), role in select(ROLES.to_vec()), of in 0..6_usize, style in select(vec![Style::Text, Style::IsError]),
        owed in prop::collection::vec((settled(), long_name()), 0..5),
        readings in prop::collection::vec(reading(), 0..64),
        others in prop::collection::vec((settled(), long_name()), 1..12),
    ) {
        let named = |label: &str| about(
            Naming { device: format!("{label}（{label}）"), spoken: spoken(label, lang), ..naming(role, lang) }, of, lang);
        let answer = match what {
            0 => operation(&settled, &named(&label), lang),
            1 => refusal(&refused, Some(&named(&label)), lang),
            2 => {
                let members = others.iter().map(|(settled, label)| MemberReply {
                    naming: named(label), required: true, reply: Reply::Settled(Box::new(settled.clone())),
                });
                together(&label, true, &members.collect::<Vec<_>>(), lang)
            }
            3 => state(&report(readings), None, &named(&label), lang),
            _ => {
                let report = report(readings);
                let rows = others.iter().take(LIST_ROWS_MAX)
                    .map(|(_, label)| Row::new(&named(label), Some(label), true, Some(&report), None));
                list(rows.collect(), 3, true, lang)
            }
        };
        let own = answer.say.clone();
        let owed: Vec<_> = owed.into_iter().map(|(settled, label)| (settled, named(&label))).collect();
        let answer = answer.corrected(&owed, lang);
        prop_assert!(answer.say.ends_with(&own));
        prop_assert_eq!(owed.is_empty(), answer.say == own);
        let short = answer.for_endpoint(style);
        prop_assert!(short.text.len() <= ENDPOINT_BYTES_MAX, "{} {}", short.text.len(), short.text);
        let mut lines = short.text.lines();
        prop_assert_eq!(lines.next(), Some(answer.say.as_str()));
        let line: Json = serde_json::from_str(lines.next().expect("the facts")).expect("json");
        for kept in ["success", "result", "operation"] {
            prop_assert_eq!(line.get(kept), answer.structured.get(kept));
        }
        prop_assert!(serde_json::from_str::<Json>(&short.text).is_err() && line.get("action").is_none());
        let whole = line.get("shortened").is_none();
        prop_assert!(!whole || lines.next().is_some() == answer.note.is_some());
        prop_assert_eq!(short.is_error, style == Style::IsError && answer.is_error);
        prop_assert_eq!(short.error, short.is_error.then(|| answer.say.clone()));
    }

    #[test]
    fn any_name_makes_a_sentence_that_can_be_spoken(
        settled in settled(), label in owners_name(), role in select(ROLES.to_vec()), lang in select(LANGS.to_vec()),
    ) {
        let naming = Naming { spoken: spoken(&label, lang), device: label, role, unit: None, what: None, is_action: false, level: 0, sensitive: false };
        let said = operation(&settled, &naming, lang).say;
        prop_assert!(!said.is_empty() && !said.chars().any(char::is_control));
        prop_assert!(naming.spoken.chars().count() <= 32);
        prop_assert!(said.chars().count() <= 140 + 3 * 32);
        prop_assert!(!said.contains(['(', ')', '（', '）', '"', '“', '”']), "{}", said);
    }
}

#[test]
fn the_table_is_that_of_the_document() {
    let document = include_str!("answers.md");
    let row_has = |result: &str, next: &str, word: &str| {
        document
            .lines()
            .filter(|l| l.starts_with(&format!("| `{result}` |")) && l.contains(&format!("| `{next}` |")))
            .any(|l| l.split('|').nth(2).is_some_and(|words| words.split(',').any(|w| w.trim() == word)))
    };
    for outcome in Outcome::ALL {
        let (result, next) = of_outcome(*outcome);
        assert!(row_has(result.as_str(), next.as_str(), outcome.as_str()), "{outcome} {result:?} {next:?}");
    }
    for word in RefusalWord::ALL {
        let (result, next) = of_refusal(*word);
        assert!(row_has(result.as_str(), next.as_str(), word.as_str()), "{word} {result:?} {next:?}");
    }
}

#[test]
fn ages_are_rounded_and_in_words() {
    let said = |s| (speech::ago(Duration::from_secs(s), Lang::Zh), speech::ago(Duration::from_secs(s), Lang::En));
    assert_eq!(said(2), ("刚刚".into(), "just now".into()));
    assert_eq!(said(13), ("十五秒前".into(), "fifteen seconds ago".into()));
    assert_eq!(said(58), ("一分钟前".into(), "one minute ago".into()));
    assert_eq!(said(120), ("两分钟前".into(), "two minutes ago".into()));
    assert_eq!(said(720), ("十二分钟前".into(), "twelve minutes ago".into()));
    assert_eq!(said(3_590), ("一小时前".into(), "one hour ago".into()));
    assert_eq!(said(7_300), ("两小时前".into(), "two hours ago".into()));
    assert_eq!(said(400_000), ("五天前".into(), "5 days ago".replace('5', "five")));
}

#[test]
fn an_endpoint_hears_what_decides_in_a_few_fields() {
    let settled = Settled {
        outcome: Outcome::TimedOut,
        stage: Stage::WaitingDeviceReport,
        reason: Some(Reason::Timeout),
        elapsed: Duration::from_secs(3),
        found: Some(Reading {
            value: Value::Bool(false),
            evidence: Evidence::Pin,
            age: Duration::from_secs(190),
            trust: Trust::Old,
        }),
        ..Settled::unknown(OpId::new("4f1c00aa11bb"), DeviceId::new("lamp").expect("an id"), "power".into(), None)
    };
    let lamp = Naming { device: "客厅灯".into(), spoken: "客厅灯".into(), ..naming(Role::Light, Lang::Zh) };
    let settled = Settled { wish: Some(Value::Bool(true)), ..settled };
    let said = operation(&settled, &lamp, Lang::Zh).for_endpoint(Style::Text).text;
    assert_eq!(
        said,
        "不确定：客厅灯收到了，三秒没有下文，现在是开是关不知道，麻烦看一眼。\n\
         {\"success\":false,\"result\":\"unconfirmed\",\"next\":\"ask_user_to_look\",\"stage\":\"waiting_device_report\",\
         \"reason\":\"timeout_after_3000ms\",\"device\":\"客厅灯\",\"device_state\":{\"power\":\"off\"},\"trust\":\"old\",\"age_s\":190,\
         \"operation\":\"4f1c00aa11bb\"}\n（给助手：不要说做了，也不要说没做；不要自动重试。）"
    );
    let offline = refusal(&Refusal::Offline { last_heard: None }, Some(&lamp), Lang::Zh).for_endpoint(Style::IsError);
    assert!(offline.is_error && offline.text.contains("\"reason\":\"offline\""), "{}", offline.text);
    let row =
        Row::new(&lamp, Some("客厅"), true, Some(&report(vec![settled.found.clone().expect("it was read")])), None);
    let eight = list(vec![row; LIST_ROWS_MAX], 4, true, Lang::Zh).for_endpoint(Style::Text).text;
    assert!(eight.contains("\"more\":4") && !eight.contains("shortened"), "a list of everyday names is whole: {eight}");
}

#[test]
fn a_list_of_names_stays_speakable() {
    let many: Vec<String> = (0..40).map(|i| format!("客厅灯{i}")).collect();
    let said = speech::names(&many, Lang::Zh);
    assert!(said.chars().count() < 45 && said.contains("还有"), "{said}");
    assert_eq!(speech::names(&["灯（书房）".into(), "灯（客厅）".into()], Lang::Zh), "书房的灯和客厅的灯");
    assert_eq!(speech::names(&["lamp (study)".into()], Lang::En), "lamp in study");
}

#[test]
fn stages_that_were_entered_twice_are_added_up() {
    let stages = [
        (Stage::Admission, Duration::from_millis(1)),
        (Stage::WaitingDeviceAck, Duration::from_millis(2)),
        (Stage::WaitingDeviceAck, Duration::from_millis(5)),
    ];
    let json = serde_json::to_string(&StagesMs::new(&stages)).expect("serialises");
    assert_eq!(json, r#"{"admission":1,"waiting_device_ack":7}"#);
}

#[test]
fn s8_1_stages_that_were_not_shown_are_named_as_skipped() {
    let at = |stage| (stage, Duration::from_millis(1));
    let admission = [at(Stage::Admission)];
    assert_eq!(skipped(&admission, Stage::Settled), None, "nothing was sent");
    let blind = [at(Stage::Admission), at(Stage::WaitingBroker), at(Stage::WaitingDeviceAck)];
    assert_eq!(skipped(&blind, Stage::WaitingDeviceAck), None, "it stopped where it was seen");
    let at_once = [at(Stage::WaitingBroker), at(Stage::WaitingDeviceAck), at(Stage::WaitingDeviceReport)];
    assert_eq!(skipped(&at_once, Stage::Settled), Some(vec!["waiting_device_start", "waiting_read_back"]));
}

#[test]
fn s7_2_a_question_is_a_sentence_by_the_rules_and_never_holds_its_code() {
    let wanted = [
        Wanted::To(Value::Bool(true)),
        Wanted::To(Value::Bool(false)),
        Wanted::To(Value::Number(22.5)),
        Wanted::To(Value::Text("cool".into())),
        Wanted::By(-1.0),
        Wanted::Other,
        Wanted::Action,
    ];
    let cases = LANGS.into_iter().flat_map(|lang| ROLES.map(|role| (lang, role)));
    for (lang, role, wanted) in cases.flat_map(|(lang, role)| wanted.clone().map(|wanted| (lang, role, wanted))) {
        for (things, whole, spoken, pressed) in
            [(1, false, false, false), (1, true, false, true), (6, true, true, false)]
        {
            let asking = Asking {
                things: vec![(naming(role, lang), wanted.clone()); things],
                whole: whole.then(|| (name(lang).to_owned(), true)),
                spoken,
                buttons: if pressed { vec![name(lang).to_owned()] } else { Vec::new() },
                not_pressed: false,
                code: Some("c0de4711".to_owned()),
                open_for: Duration::from_secs(60),
            };
            let answer = question(&asking, lang);
            check(&answer, name(lang), lang);
            assert!(!answer.say.contains("c0de") && answer.result == ResultWord::AskUser, "{}", answer.say);
            assert!(answer.for_endpoint(Style::Text).text.contains("\"code\":\"c0de4711\""));
        }
    }
}

#[test]
fn facts_are_in_the_language_of_the_answer() {
    let allowed = |error| {
        let refused = Refusal::InvalidValue { property: "on".into(), error };
        refusal(&refused, None, Lang::Zh).structured["allowed"].as_str().map(str::to_owned)
    };
    let wrong = |expected| ValueError::WrongKind { sent: "x".into(), expected };
    for expected in
        ["true or false", "a whole number", "a number", "one of its words", "a text", "a colour like #ff8800"]
    {
        let said = allowed(wrong(expected)).expect("something is allowed");
        assert!(!said.contains(" or ") && !said.starts_with("a ") && !said.starts_with("one "), "{said}");
    }
    assert_eq!(allowed(ValueError::OutOfRange { sent: 5.0, min: 16.0, max: 30.0 }).as_deref(), Some("16 到 30"));
    let level = Refusal::UnknownProperty { asked: "level".into(), known: vec!["relay".into()] };
    for (lang, said) in [(Lang::En, "has no such level to set; it has relay"), (Lang::Zh, "没有这样能调的数值，有开关")]
    {
        let refused = refusal(&level, None, lang);
        assert!(refused.say.contains(said), "{}", refused.say);
        assert!(refused.note.is_some_and(|note| note.contains("switch_device")));
    }
    let empty = Refusal::UnknownProperty { asked: String::new(), known: Vec::new() };
    assert!(refusal(&empty, None, Lang::En).structured.get("allowed").is_none());
    let how = Refusal::InvalidArgument { parameter: "how", sent: "x".into(), allowed: "to, up_by".into() };
    assert!(!refusal(&how, None, Lang::En).note.expect("a note").contains("Ask the user"));
}
