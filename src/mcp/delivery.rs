//! Knowing when an answer has left: a response body that counts until it was handed to the connection or dropped.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use tokio::sync::watch;

use super::inflight::Held;

/// One request whose answer is not written out yet; dropping it counts it down.
#[derive(Debug)]
pub(super) struct Delivered(watch::Sender<usize>);

impl Delivered {
    /// Counts a request from now on.
    pub(super) fn expected(open: watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }

    /// Counts until this body has ended.
    pub(super) fn with(self, body: Body, held: Option<Arc<Held>>) -> Counted {
        Counted { body, delivered: Some(self), held }
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
    body: Body,
    delivered: Option<Delivered>,
    /// The id of the request, which is free once its answer has left.
    held: Option<Arc<Held>>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) {
            self.delivered = None;
            self.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
