//! The correction in front of a caller's next answer (semantics 6.3): what it was told is no longer true.

use serde_json::{Value as Json, json};

use super::{Naming, Rendered, operation, operation::pick};
use crate::{names::Lang, twin::words::Settled};

impl Rendered {
    /// Puts what is owed to the caller in front: in `say`, first, and as `correction`, each with the operation that it is of.
    #[must_use]
    pub fn corrected(mut self, owed: &[(Settled, Naming)], lang: Lang) -> Self {
        if owed.is_empty() {
            return self;
        }
        let mut said = String::new();
        let mut listed = Vec::new();
        for (settled, naming) in owed {
            let now = operation(settled, naming, lang);
            let head = pick(lang, "更正：", "Correction: ");
            let say = if now.say.starts_with(head) { now.say } else { format!("{head}{}", now.say) };
            said += &say;
            said += pick(lang, "", " ");
            listed.push(json!({
                "device": naming.device,
                "operation": settled.op.as_str(),
                "result": now.result.as_str(),
                "outcome": settled.outcome.as_str(),
                "say": say,
            }));
        }
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
