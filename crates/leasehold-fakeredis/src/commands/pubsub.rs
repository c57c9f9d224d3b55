use crate::core::Core;
use crate::reply::{Outcome, Reply};

pub(super) fn publish(core: &mut Core, args: &[&[u8]]) -> Outcome {
    Ok(Reply::count(core.clients.publish(args[1], args[2])))
}

/// Confirms each channel. The last confirmation is the reply; the others come before it.
pub(super) fn subscribe(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let caller = core.caller;
    let confirmations = args[1..].iter().map(|channel| {
        let count = core.clients.subscribe(caller, channel);
        confirmation("subscribe", Reply::bulk(channel), count)
    });
    let confirmations = confirmations.collect();
    Ok(last_of(core, confirmations))
}

pub(super) fn unsubscribe(core: &mut Core, args: &[&[u8]]) -> Outcome {
    let caller = core.caller;
    let channels = match &args[1..] {
        [] => core.clients.of(caller).channels.clone(),
        named => named.iter().map(|channel| channel.to_vec()).collect(),
    };
    if channels.is_empty() {
        return Ok(confirmation("unsubscribe", Reply::Nil, 0));
    }
    let confirmations = channels.into_iter().map(|channel| {
        let count = core.clients.unsubscribe(caller, &channel);
        confirmation("unsubscribe", Reply::Bulk(channel), count)
    });
    let confirmations = confirmations.collect();
    Ok(last_of(core, confirmations))
}

fn confirmation(kind: &str, channel: Reply, count: usize) -> Reply {
    Reply::Push(vec![Reply::bulk(kind), channel, Reply::count(count)])
}

fn last_of(core: &mut Core, mut confirmations: Vec<Reply>) -> Reply {
    let last = confirmations.pop().unwrap_or(Reply::Nil);
    core.clients.of(core.caller).outgoing.extend(confirmations);
    last
}
