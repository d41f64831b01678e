//! Lists in pages. A cursor is ours: it names the last item of the page before, so that nothing is lost or told twice when
//! things come and go in between. To a client it is opaque.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Items of one page: a home has fewer things, so most clients never see a cursor, and no answer grows beyond some 20 KB.
pub(super) const PAGE: usize = 50;

/// In front of the item in a cursor: another server's cursor, or one of a version to come, is none of ours.
const MARK: &str = "after:";

/// Longest cursor that is looked at, bytes: a mark and the longest URI, encoded.
const CURSOR_BYTES_MAX: usize = 512;

/// A cursor that this server never gave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cursor was not given by this server; ask again without one")]
pub struct BadCursor;

/// The page that a cursor asks for, of items in the order of their keys, and the cursor of the next page.
pub(super) fn page<'a, T>(
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<(&'a [T], Option<String>), BadCursor> {
    let after = cursor.filter(|cursor| !cursor.is_empty()).map(decoded).transpose()?;
    let from = after.map_or(0, |after| items.partition_point(|item| key(item) <= after.as_str()));
    let rest = &items[from..];
    let page = &rest[..rest.len().min(PAGE)];
    let next = page.last().filter(|_| rest.len() > PAGE).map(|last| encoded(key(last)));
    Ok((page, next))
}

/// A list that always is one page: only no cursor is right. Clients that send an empty one mean none.
pub(super) fn only_page(cursor: Option<&str>) -> Result<(), BadCursor> {
    if cursor.is_none_or(str::is_empty) { Ok(()) } else { Err(BadCursor) }
}

fn encoded(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MARK}{last}"))
}

fn decoded(cursor: &str) -> Result<String, BadCursor> {
    if cursor.len() > CURSOR_BYTES_MAX {
        return Err(BadCursor);
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?).map_err(|_| BadCursor)?;
    text.strip_prefix(MARK).map(str::to_owned).ok_or(BadCursor)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    fn all(items: &[String]) -> Vec<String> {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (some, next) = page(items, |i| i, cursor.as_deref()).unwrap();
            seen.extend_from_slice(some);
            cursor = next;
            if cursor.is_none() {
                return seen;
            }
        }
    }

    #[test]
    fn each_item_is_told_once_and_the_last_page_has_no_cursor() {
        for n in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 3 * PAGE + 7] {
            let items: Vec<String> = (0..n).map(|i| format!("{i:04}")).collect();
            assert_eq!(all(&items), items);
        }
    }

    #[test]
    fn what_comes_and_goes_between_pages_shifts_nothing() {
        let mut items: Vec<String> = (0..2 * PAGE).map(|i| format!("{i:04}")).collect();
        let (first, cursor) = page(&items, |i| i, None).unwrap();
        let first = first.to_vec();
        // The very item that the cursor names is gone, and one has come before it.
        items.retain(|i| *i != first[PAGE - 1]);
        items.insert(0, "0000-new".to_owned());
        let (second, end) = page(&items, |i| i, cursor.as_deref()).unwrap();
        assert_eq!(second, (PAGE..2 * PAGE).map(|i| format!("{i:04}")).collect::<Vec<_>>());
        assert_eq!(end, None);
    }

    #[test]
    fn a_cursor_that_was_never_given_is_an_error_and_an_empty_one_is_none() {
        let items = vec!["a".to_owned()];
        for bad in ["x", "bm90IG91cnM", "!!!", "null", &"A".repeat(100_000)] {
            assert_eq!(page(&items, |i| i, Some(bad)), Err(BadCursor), "{bad:.20}");
            assert_eq!(only_page(Some(bad)), Err(BadCursor));
        }
        assert_eq!(page(&items, |i| i, Some("")).unwrap().0, ["a"]);
        assert_eq!((only_page(None), only_page(Some(""))), (Ok(()), Ok(())));
    }
}
