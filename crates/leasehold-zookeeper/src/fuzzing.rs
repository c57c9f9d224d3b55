//! What the fuzz target calls; `fuzz/README.md` says how to run it.

use std::collections::BTreeSet;

use leasehold::Mode;
use leasehold::store::Permits;

use crate::queue::{Kind, Node, Paths, Queue, Reader, key_of};
use crate::url::EnsembleUrl;
use crate::{client, examine, store};

/// URLs, the messages of a server, names and contents of nodes.
///
/// # Panics
///
/// If a name is not what was written.
pub fn zookeeper(bytes: &[u8]) {
    client::read_all(bytes);
    store::read_all(bytes);
    let text = &*String::from_utf8_lossy(bytes);
    if let Ok(url) = EnsembleUrl::parse(text) {
        let _ = format!("{url} {url:?}");
    }
    if let Some(key) = key_of(text) {
        assert_eq!(Paths::of("/", &key).lock, format!("/{text}"));
    }
    let _ = examine::read_facts(text);
    // One name, and a folder with a name in each line.
    if let Ok(Some(node)) = Node::parse(text)
        && let Some(owner) = node.owner
    {
        let again = Node::parse(&node.replaced_by(owner, node.kind));
        let again = again.ok().flatten().map(|node| (node.owner, node.kind));
        assert_eq!(again, Some((Some(owner), node.kind)));
    }
    // A folder has each name once.
    let names: BTreeSet<String> = text.lines().map(ToOwned::to_owned).collect();
    if let Ok(queue) = Queue::read(&Vec::from_iter(names)) {
        decide(&queue);
    }
}

fn decide(queue: &Queue) {
    let permits = Permits::new(3).expect("a number of permits");
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Permit(permits)] {
        for barges in [false, true] {
            for number in [None, Some(0), Some(5), Some(u32::MAX)] {
                let kind = Kind::of(mode, barges);
                let _ = queue.decide(Reader { kind, number }, Some(7));
            }
        }
    }
    let all = queue.holders().count() + queue.waiters().count();
    assert!(
        all >= queue.nodes().len(),
        "a node is neither holder nor waiter"
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn nodes_and_messages_of_any_bytes_are_read_safely() {
        leasehold_testkit::feed_seeds("zookeeper", 2_000, super::zookeeper);
    }
}
