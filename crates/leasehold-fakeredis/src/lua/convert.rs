//! Conversion of arguments and results of scripts, by Redis' rules.

use mlua::{IntoLua, Lua, Table, Value};

use crate::reply::Reply;

/// Bytes that become a Lua string.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl IntoLua for Bytes<'_> {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        lua.create_string(self.0).map(Value::String)
    }
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
