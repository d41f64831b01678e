//! How a metric of the table becomes series of the recorder: one for each combination of its labels' words, all of
//! them registered at the start, so that a first failure is a step from 0 that `rate()` can see.

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder as _, SharedString};
use metrics_exporter_prometheus::PrometheusRecorder;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations up to each of these bounds.
    Histogram(&'static [f64]),
}

/// One label: its name, and all the words it can have. A word that is not among them is counted under the last one.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The label's name.
    pub label: &'static str,
    /// Its words.
    pub all: fn() -> Vec<&'static str>,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, with the unit, `_total` for counters.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [Words],
    /// What it says, one line.
    pub help: &'static str,
}

static METADATA: Metadata<'static> = Metadata::new("truetwin", Level::INFO, None);

/// The series of one metric, by the words of its labels.
pub(super) struct Series<T> {
    words: Vec<Vec<&'static str>>,
    handles: Vec<T>,
}

impl<T> Series<T> {
    fn new(metric: &Metric, register: impl Fn(&Key) -> T) -> Self {
        let words: Vec<Vec<&'static str>> = metric.labels.iter().map(|label| (label.all)()).collect();
        let mut combinations: Vec<Vec<Label>> = vec![Vec::new()];
        for (label, words) in metric.labels.iter().zip(&words) {
            let with = |before: &Vec<Label>, word| {
                before.iter().cloned().chain([Label::from_static_parts(label.label, word)]).collect()
            };
            combinations =
                combinations.iter().flat_map(|before| words.iter().map(move |word| with(before, word))).collect();
        }
        let handles = combinations.into_iter().map(|labels| register(&Key::from_parts(metric.name, labels))).collect();
        Self { words, handles }
    }

    /// The series with these words, one for each label in the table's order.
    pub(super) fn at(&self, labels: &[&str]) -> &T {
        debug_assert_eq!(labels.len(), self.words.len(), "one word for each label");
        let index = self.words.iter().zip(labels).fold(0, |index, (words, wanted)| {
            let at = words.iter().position(|word| word == wanted).unwrap_or(words.len() - 1);
            index * words.len() + at
        });
        &self.handles[index]
    }
}

pub(super) fn counter(recorder: &PrometheusRecorder, metric: &Metric) -> Series<Counter> {
    debug_assert_eq!(metric.kind, Kind::Counter);
    recorder.describe_counter(metric.name.into(), None, SharedString::const_str(metric.help));
    Series::new(metric, |key| recorder.register_counter(key, &METADATA))
}

pub(super) fn gauge(recorder: &PrometheusRecorder, metric: &Metric) -> Series<Gauge> {
    debug_assert_eq!(metric.kind, Kind::Gauge);
    recorder.describe_gauge(metric.name.into(), None, SharedString::const_str(metric.help));
    Series::new(metric, |key| recorder.register_gauge(key, &METADATA))
}

pub(super) fn histogram(recorder: &PrometheusRecorder, metric: &Metric) -> Series<Histogram> {
    debug_assert!(matches!(metric.kind, Kind::Histogram(_)));
    recorder.describe_histogram(metric.name.into(), None, SharedString::const_str(metric.help));
    Series::new(metric, |key| recorder.register_histogram(key, &METADATA))
}
