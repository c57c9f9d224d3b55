//! Conversion between Lua values and replies, by Redis' rules.

use mlua::{BorrowedBytes, IntoLua, Lua, MultiValue, Table, Value};

use crate::number;
use crate::reply::{Failure, Outcome, Reply};

/// Bytes that become a Lua string.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl IntoLua for Bytes<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
}

/// Calls `run` with the arguments of `redis.call` as the words of a command.
pub(super) fn command(args: &MultiValue, run: impl FnOnce(&[&[u8]]) -> Outcome) -> Outcome {
    enum Word {
        Text(BorrowedBytes),
        Number(String),
    }
    let words = args.iter().map(|arg| match arg {
        Value::String(text) => Ok(Word::Text(text.as_bytes())),
        Value::Integer(number) => Ok(Word::Number(number::text(*number as f64))),
        Value::Number(number) => Ok(Word::Number(number::text(*number))),
        _ => {
            let text = "ERR Lua redis lib command arguments must be strings or integers";
            Err(Failure::from(text))
        }
    });
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let words = words.iter().map(|word| match word {
        Word::Text(text) => &text[..],
        Word::Number(text) => text.as_bytes(),
    });
    run(&words.collect::<Vec<_>>())
}

/// Returns the reply for the script, and whether it is an error.
pub(super) fn from_outcome(lua: &Lua, outcome: Outcome) -> mlua::Result<(Value, Option<bool>)> {
    match outcome {
        Ok(reply) => Ok((from_reply(lua, reply)?, None)),
        Err(Failure(text)) => Ok((field(lua, "err", &text)?, Some(true))),
    }
}

fn field(lua: &Lua, name: &str, text: &str) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, text)?;
    Ok(Value::Table(table))
}

fn from_reply(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let string = |bytes: &[u8]| Bytes(bytes).into_lua(lua);
    match reply {
        Reply::Integer(number) => Ok(Value::Number(number as f64)),
        Reply::Bulk(bytes) => string(&bytes),
        Reply::Double(number) => string(number::text(number).as_bytes()),
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Simple(text) => field(lua, "ok", &text),
        Reply::Error(text) => field(lua, "err", &text),
        Reply::Array(items) | Reply::Push(items) => list(lua, items),
        Reply::Map(pairs) => {
            let items = pairs.into_iter().flat_map(|(key, value)| [key, value]);
            list(lua, items.collect())
        }
    }
}

fn list(lua: &Lua, items: Vec<Reply>) -> mlua::Result<Value> {
    let values = items.into_iter().map(|item| from_reply(lua, item));
    let values: Vec<Value> = values.collect::<mlua::Result<_>>()?;
    lua.create_sequence_from(values).map(Value::Table)
}

/// Converts the result of a script to a reply.
pub(super) fn to_reply(value: &Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::Boolean(true) => Reply::Integer(1),
        Value::Integer(number) => Reply::Integer(*number),
        Value::Number(number) => Reply::Integer(truncated(*number)),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Table(table) => from_table(table)?,
        _ => Reply::Nil,
    })
}

fn from_table(table: &Table) -> mlua::Result<Reply> {
    let text = |name: &str| match table.raw_get(name)? {
        Value::String(text) => mlua::Result::Ok(Some(text.to_string_lossy())),
        _ => Ok(None),
    };
    if let Some(error) = text("err")? {
        return Ok(Reply::Error(error.into()));
    }
    if let Some(status) = text("ok")? {
        return Ok(Reply::Simple(status.into()));
    }
    let mut items = Vec::new();
    loop {
        let value: Value = table.raw_get(items.len() + 1)?;
        if value.is_nil() {
            return Ok(Reply::Array(items));
        }
        items.push(to_reply(&value)?);
    }
}

/// Converts a double to a 64-bit integer as C does on the usual processors.
fn truncated(number: f64) -> i64 {
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}
