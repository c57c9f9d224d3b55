use crate::clients::Transaction;
use crate::core::Core;
use crate::reply::{Outcome, Reply};

pub(super) fn multi(core: &mut Core, _args: &[&[u8]]) -> Outcome {
    let transaction = &mut core.clients.of(core.caller).transaction;
    if transaction.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    *transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

pub(super) fn discard(core: &mut Core, _args: &[&[u8]]) -> Outcome {
    match core.clients.of(core.caller).transaction.take() {
        Some(_) => Ok(Reply::OK),
        None => Err("ERR DISCARD without MULTI".into()),
    }
}

pub(super) fn exec(core: &mut Core, _args: &[&[u8]]) -> Outcome {
    let transaction = core.clients.of(core.caller).transaction.take();
    let transaction = transaction.ok_or("ERR EXEC without MULTI")?;
    if transaction.is_broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    let commands = transaction.commands.iter();
    let replies = commands.map(|command| {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        core.run(&args).into()
    });
    Ok(Reply::Array(replies.collect()))
}
