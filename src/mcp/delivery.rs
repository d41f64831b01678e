//! How an answer leaves: in one piece with the head of its response if it comes soon, and counted until it was handed to the
//! connection or dropped.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

use super::inflight::Held;

/// How long the head of a response waits for the answer. The SDK opens an event stream at once, with an event that only says by which
/// id it could be resumed: sent alone, it is a segment, a wake-up of the client and a tenth of a call more for nothing that anybody
/// waits for. A client whose connection breaks before it came cannot resume that call; `check_operation` tells what became of it.
const HEAD_WAITS_MAX: Duration = Duration::from_millis(200);

/// What the head waits for: the opening event, and what comes behind it (an answer, or how far the call is).
const FIRST_FRAMES: usize = 2;

/// A frame of a body.
type Framed = Result<Frame<Bytes>, axum::Error>;

/// One request whose answer is not written out yet; dropping it counts it down.
#[derive(Debug)]
pub(super) struct Delivered(watch::Sender<usize>);

impl Delivered {
    /// Counts a request from now on.
    pub(super) fn expected(open: watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }

    /// Waits for the first words of a body, then counts until it has ended.
    pub(super) async fn with(self, body: Body, held: Option<Arc<Held>>) -> Counted {
        let mut counted = Counted { first: VecDeque::new(), rest: Some(body), delivered: Some(self), held };
        let gather = async {
            while counted.first.len() < FIRST_FRAMES
                && let Some(frame) = poll_fn(|context| counted.poll_rest(context)).await
            {
                counted.first.push_back(frame);
            }
        };
        let _the_answer_takes_longer = tokio::time::timeout(HEAD_WAITS_MAX, gather).await;
        counted
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// A body that is counted until it has ended.
#[derive(Debug)]
pub(super) struct Counted {
    /// What came of it before the head left.
    first: VecDeque<Framed>,
    /// `None` once it has ended: a stream must not be asked again then.
    rest: Option<Body>,
    delivered: Option<Delivered>,
    /// The id of the request, which is free once its answer has left.
    held: Option<Arc<Held>>,
}

impl Counted {
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Option<Framed>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let frame = Pin::new(rest).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) {
            self.rest = None;
        }
        frame
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Framed>> {
        if let Some(frame) = self.first.pop_front() {
            return Poll::Ready(Some(frame));
        }
        let frame = self.poll_rest(context);
        if matches!(frame, Poll::Ready(None)) {
            self.delivered = None;
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.iter().flatten().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum::<u64>();
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut all = SizeHint::new();
        all.set_lower(first + rest.lower());
        if let Some(upper) = rest.upper() {
            all.set_upper(first + upper);
        }
        all
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt as _, stream};
    use tokio::{sync::mpsc, time::Instant};

    use super::*;

    /// A body that ends when its other end is dropped, and panics if it is asked again after that.
    fn body() -> (mpsc::UnboundedSender<&'static str>, Body) {
        let (words, said) = mpsc::unbounded_channel();
        let next = |mut said: mpsc::UnboundedReceiver<&'static str>| async move {
            let word = said.recv().await?;
            Some((Ok::<_, Infallible>(word), said))
        };
        (words, Body::from_stream(stream::unfold(said, next)))
    }

    async fn rest(counted: Counted) -> Vec<Bytes> {
        Body::new(counted).into_data_stream().map(Result::unwrap).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_soon_leaves_with_its_head_and_one_that_does_not_keeps_the_head_for_a_moment() {
        for (after, waits) in [(Duration::ZERO, 0), (HEAD_WAITS_MAX / 2, 100), (HEAD_WAITS_MAX * 4, 200)] {
            let (open, _) = watch::channel(0);
            let (words, body) = body();
            words.send("opening").unwrap();
            let began = Instant::now();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                words.send("answer").unwrap();
            });
            let counted = Delivered::expected(open.clone()).with(body, None).await;
            assert_eq!(began.elapsed().as_millis(), waits, "the answer comes after {after:?}");
            assert_eq!(counted.first.len(), if after < HEAD_WAITS_MAX { 2 } else { 1 });
            assert_eq!(*open.borrow(), 1, "it is not delivered yet");
            assert_eq!(rest(counted).await, ["opening", "answer"], "nothing is lost and nothing comes twice");
            assert_eq!(*open.borrow(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_ends_at_once_is_not_waited_for_and_keeps_its_length() {
        let (open, _) = watch::channel(0);
        for (body, bytes) in [(Body::from("whole"), Some(5)), (Body::empty(), Some(0))] {
            let began = Instant::now();
            let counted = Delivered::expected(open.clone()).with(body, None).await;
            assert_eq!((counted.size_hint().exact(), began.elapsed()), (bytes, Duration::ZERO));
            assert_eq!(rest(counted).await.concat().len() as u64, bytes.unwrap());
        }
        let (words, ended) = body();
        drop(words);
        let counted = Delivered::expected(open.clone()).with(ended, None).await;
        assert!(counted.is_end_stream() && rest(counted).await.is_empty());
    }
}
