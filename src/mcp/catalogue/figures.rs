//! What the texts say of numbers: ranges, units and what "a bit" is, from the devices in the house.

use std::fmt::Write as _;

use crate::{
    answer::{number, terms},
    mcp::house::House,
    names::Lang,
    names::ends,
    property::Property,
};

/// How many kinds of numbers the text describes. What is left out is told by the refusal of a wrong one.
const FIGURES_MAX: usize = 6;

/// How many properties "a bit" is given for.
const RELATIVE_MAX: usize = 3;

/// One kind of number in the house: a property name with its widest range.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    name: String,
    range: Option<(f64, f64)>,
    /// Whether devices differ in the range.
    differs: bool,
    step: Option<f64>,
    unit: Option<String>,
    opens: bool,
}

/// The kinds of numbers that can be set, in the order of the house.
pub(super) fn figures(house: &House) -> Vec<Figure> {
    let mut found: Vec<Figure> = Vec::new();
    for property in house.listed().flat_map(|e| e.levels()) {
        match found.iter_mut().find(|f| *f.name == *property.name) {
            Some(known) => known.take_in(property),
            None => found.push(Figure::of(property)),
        }
    }
    found
}

impl Figure {
    fn of(property: &Property) -> Self {
        Self {
            name: property.name.to_string(),
            range: property.min.zip(property.max),
            differs: false,
            step: property.step,
            unit: property.unit.as_deref().and_then(terms::unit).map(str::to_owned),
            opens: ends(property).is_some(),
        }
    }

    fn take_in(&mut self, property: &Property) {
        let range = property.min.zip(property.max);
        self.differs |= range != self.range;
        self.opens &= ends(property).is_some();
        self.range = match (self.range, range) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (known, other) => known.or(other),
        };
    }

    /// The property's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn text(&self, lang: Lang) -> String {
        let mut text = self.name.clone();
        let said = terms::property(&self.name, lang).filter(|said| *said != self.name && lang == Lang::Zh);
        if let Some(said) = said {
            let _never_fails = write!(text, " {said}");
        }
        let Some((min, max)) = self.range else { return text };
        let unit = self.unit.as_deref().unwrap_or_default();
        let _never_fails = write!(text, " {}-{}{unit}", number(min), number(max));
        let step = self.step.filter(|step| (step - 1.0).abs() > f64::EPSILON && max - min < 100.0);
        let more: Vec<String> = match lang {
            Lang::En => [
                step.map(|step| format!("steps of {}", number(step))),
                self.opens.then(|| format!("{} = closed, {} = open", number(min), number(max))),
                self.differs.then(|| "less on some".to_owned()),
            ],
            Lang::Zh => [
                step.map(|step| format!("步长{}", number(step))),
                self.opens.then(|| format!("{}=全关 {}=全开", number(min), number(max))),
                self.differs.then(|| "有的设备范围小些".to_owned()),
            ],
        }
        .into_iter()
        .flatten()
        .collect();
        if !more.is_empty() {
            let (open, comma, close) = if lang == Lang::Zh { ("（", "，", "）") } else { (" (", ", ", ")") };
            let _never_fails = write!(text, "{open}{}{close}", more.join(comma));
        }
        text
    }

    /// How much "a bit" is: a degree, else a fifth of the range, in whole steps.
    fn relative(&self) -> Option<f64> {
        let (min, max) = self.range?;
        let degrees = self.unit.as_deref().is_some_and(|unit| ["°C", "℃", "C", "°F"].contains(&unit));
        let wanted = if degrees { 1.0 } else { (max - min) / 5.0 };
        let step = self.step.filter(|step| *step > 0.0).unwrap_or(if degrees { 0.1 } else { 1.0 });
        Some((wanted / step).round().max(1.0) * step)
    }
}

/// Those whose names are words. A tool's text is what a model trusts most; what a device writes is no part of it.
fn plain(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    figures.iter().filter(|figure| terms::is_plain(&figure.name))
}

/// The ranges: `brightness 0-100%; temperature 16-30°C (steps of 0.5)`.
pub(super) fn ranges(figures: &[Figure], lang: Lang) -> String {
    let told: Vec<String> = plain(figures).take(FIGURES_MAX).map(|f| f.text(lang)).collect();
    told.join(if lang == Lang::Zh { "；" } else { "; " })
}

/// What "a bit" is: `20 for brightness, 1 for temperature`.
pub(super) fn relative(figures: &[Figure], lang: Lang) -> String {
    let told = plain(figures).filter_map(|f| Some((f, f.relative()?))).take(RELATIVE_MAX).map(|(f, step)| match lang {
        Lang::En => format!("{} for {}", number(step), f.name),
        Lang::Zh => format!("{}用{}", f.name, number(step)),
    });
    told.collect::<Vec<_>>().join(if lang == Lang::Zh { "，" } else { ", " })
}
