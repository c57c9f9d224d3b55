//! `redis.call` on the stack of Lua.
//!
//! A simulated run makes thousands of these calls. The safe interface of `mlua` would add a reference to
//! Lua's registry for each argument, and take three times as long as the commands themselves.
#![expect(
    unsafe_code,
    reason = "arguments are read and replies are pushed without a copy of their own"
)]

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::abort;
use std::slice;

use mlua::ffi::{
    LUA_TNUMBER, LUA_TSTRING, lua_State, lua_checkstack, lua_createtable, lua_gettop,
    lua_pushboolean, lua_pushlstring, lua_pushnumber, lua_rawset, lua_rawseti, lua_replace,
    lua_tolstring, lua_tonumber, lua_type,
};
use mlua::{Function, Lua};

use crate::core::Core;
use crate::failure::Failure;
use crate::number;
use crate::reply::{Outcome, Reply};

thread_local! {
    /// The server whose script runs.
    pub(super) static CURRENT: RefCell<Core> = RefCell::default();
}

/// Creates the function that runs a command. It returns the reply, and whether it is an error.
pub(super) fn function(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: `dispatch` follows the rules of a C function of Lua: it uses its own part of the stack, and
    // no panic leaves it.
    unsafe { lua.create_c_function(dispatch) }
}

/// The most arguments that need no allocation.
const USUAL_ARGUMENTS: usize = 12;

/// The room on the stack for a reply. Lists are nested in pushes and pages of keys only.
const DEPTH_MAX: c_int = 16;

unsafe extern "C-unwind" fn dispatch(state: *mut lua_State) -> c_int {
    // SAFETY: Lua passes a valid state. Only a lack of memory ends a call of Lua by a jump; this skips the
    // drop of a reply.
    let run = || unsafe {
        let count = lua_gettop(state);
        if lua_checkstack(state, DEPTH_MAX) == 0 {
            abort();
        }
        let outcome = run_on(state, count);
        push_outcome(state, outcome)
    };
    // A panic must not unwind through Lua, which would make an error of the script out of it.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| abort())
}

/// Runs the command in the first `count` places of the stack.
///
/// # Safety
///
/// The state is valid, and its stack has that many values and room for one more.
unsafe fn run_on(state: *mut lua_State, count: c_int) -> Outcome {
    let mut usual = [&[][..]; USUAL_ARGUMENTS];
    let mut many = Vec::new();
    let words = match usual.get_mut(..count as usize) {
        Some(words) => words,
        None => {
            many.resize(count as usize, &[][..]);
            &mut many[..]
        }
    };
    for (word, place) in words.iter_mut().zip(1..) {
        // SAFETY: the place has a value. A string lives as long as the stack has it, which is longer than
        // this call. A number is replaced by its text, so Lua does not convert it in its own way.
        unsafe {
            match lua_type(state, place) {
                LUA_TSTRING => {}
                LUA_TNUMBER => {
                    let text = number::text(lua_tonumber(state, place));
                    push_bytes(state, text.as_bytes());
                    lua_replace(state, place);
                }
                _ => return Err(WRONG_ARGUMENT),
            }
            let mut length = 0;
            let start = lua_tolstring(state, place, &raw mut length);
            *word = slice::from_raw_parts(start.cast(), length);
        }
    }
    CURRENT.with_borrow_mut(|core| core.run(words))
}

const WRONG_ARGUMENT: Failure = Failure(std::borrow::Cow::Borrowed(
    "ERR Lua redis lib command arguments must be strings or integers",
));

/// Pushes a reply, and whether it is an error. Returns the number of values.
///
/// # Safety
///
/// The state is valid, and its stack has room for the reply.
unsafe fn push_outcome(state: *mut lua_State, outcome: Outcome) -> c_int {
    // SAFETY: as for this function.
    unsafe {
        match outcome {
            Ok(reply) => {
                push_reply(state, &reply);
                1
            }
            Err(Failure(text)) => {
                push_field(state, b"err", text.as_bytes());
                lua_pushboolean(state, 1);
                2
            }
        }
    }
}

/// Pushes a reply by Redis' rules of conversion.
///
/// # Safety
///
/// As for [`push_outcome`].
unsafe fn push_reply(state: *mut lua_State, reply: &Reply) {
    // SAFETY: as for this function.
    unsafe {
        match reply {
            Reply::Integer(number) => lua_pushnumber(state, *number as f64),
            Reply::Bulk(bytes) => push_bytes(state, bytes),
            Reply::Double(number) => push_bytes(state, number::text(*number).as_bytes()),
            Reply::Nil => lua_pushboolean(state, 0),
            Reply::Simple(text) => push_field(state, b"ok", text.as_bytes()),
            Reply::Error(text) => push_field(state, b"err", text.as_bytes()),
            Reply::Array(items) | Reply::Push(items) => push_list(state, items.iter()),
            Reply::Map(pairs) => {
                push_list(state, pairs.iter().flat_map(|(key, value)| [key, value]));
            }
        }
    }
}

/// # Safety
///
/// As for [`push_outcome`].
unsafe fn push_list<'a>(state: *mut lua_State, items: impl Iterator<Item = &'a Reply>) {
    // SAFETY: as for this function. The table is below the item when the item is stored in it.
    unsafe {
        lua_createtable(state, items.size_hint().0 as c_int, 0);
        for (item, place) in items.zip(1..) {
            push_reply(state, item);
            lua_rawseti(state, -2, place);
        }
    }
}

/// Pushes a table with one field.
///
/// # Safety
///
/// As for [`push_outcome`].
unsafe fn push_field(state: *mut lua_State, name: &[u8], text: &[u8]) {
    // SAFETY: as for this function. The table is below the field's name and value.
    unsafe {
        lua_createtable(state, 0, 1);
        push_bytes(state, name);
        push_bytes(state, text);
        lua_rawset(state, -3);
    }
}

/// # Safety
///
/// As for [`push_outcome`].
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: Lua copies the bytes.
    unsafe { lua_pushlstring(state, bytes.as_ptr().cast(), bytes.len()) };
}
