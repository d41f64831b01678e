//! The correction in front of a caller's next answer (semantics 6.3): what it was told is no longer true.

use serde_json::{Value as Json, json};

use super::{
    Naming, Rendered, operation,
    operation::pick,
    speech::{count_en, count_zh},
};
use crate::{names::Lang, twin::words::Settled};

/// The longest that is said with corrections in front, bytes of UTF-8: what an endpoint's answer has room for beside the
/// facts that decide. Corrections beyond it are counted; `correction` has them all.
const SAY_BYTES_MAX: usize = 860;

/// What the sentence takes that counts the corrections which are not said, bytes.
const COUNT_BYTES: usize = 80;

impl Rendered {
    /// Puts what is owed to the caller in front: in `say`, first, and as `correction`, each with the operation that it is of.
    #[must_use]
    pub fn corrected(mut self, owed: &[(Settled, Naming)], lang: Lang) -> Self {
        if owed.is_empty() {
            return self;
        }
        let room = SAY_BYTES_MAX.saturating_sub(self.say.len() + COUNT_BYTES);
        let (mut said, mut unsaid) = (String::new(), 0);
        let mut listed = Vec::new();
        for (settled, naming) in owed {
            let now = operation(settled, naming, lang);
            let head = pick(lang, "更正：", "Correction: ");
            let say = if now.say.starts_with(head) { now.say } else { format!("{head}{}", now.say) };
            if unsaid == 0 && said.len() + say.len() < room {
                said += &say;
                said += pick(lang, "", " ");
            } else {
                unsaid += 1;
            }
            listed.push(json!({
                "device": naming.device,
                "operation": settled.op.as_str(),
                "result": now.result.as_str(),
                "outcome": settled.outcome.as_str(),
                "say": say,
            }));
        }
        said += &counted(unsaid, said.is_empty(), lang);
        let listed = Json::from(listed);
        self.say.insert_str(0, &said);
        // The line is an object with at least its result.
        self.line.replace_range(..1, &format!("{{\"correction\":{listed},"));
        if let Json::Object(map) = &mut self.structured {
            map.insert("correction".to_owned(), listed);
            map.insert("say".to_owned(), Json::from(self.say.as_str()));
        }
        self
    }
}

/// What is said of corrections for which a sentence has no room: that there are any, so that they are asked for.
fn counted(unsaid: u64, all: bool, lang: Lang) -> String {
    match (unsaid, all, lang) {
        (0, _, _) => String::new(),
        (_, true, Lang::Zh) => format!("更正：前面有{}个回答不对了，请再问。", count_zh(unsaid)),
        (_, false, Lang::Zh) => format!("另外还有{}个回答不对了，请再问。", count_zh(unsaid)),
        (_, true, Lang::En) => format!("Correction: {} earlier answers no longer hold; ask again. ", count_en(unsaid)),
        (_, false, Lang::En) => format!("And {} more earlier answers no longer hold; ask again. ", count_en(unsaid)),
    }
}
