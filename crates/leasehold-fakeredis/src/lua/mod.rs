//! Scripts, in one Lua state for all servers of a thread.
//!
//! Each thread compiles a script once. While the script runs, `redis.call` can reach the server's state.

mod call;
mod convert;

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;

use mlua::chunk::ChunkMode;
use mlua::state::{GcIncParams, GcMode};
use mlua::{Function, Lua, LuaOptions, LuaString, StdLib, Value};

use self::call::CURRENT;
use self::convert::{Bytes, to_reply};
use crate::core::Core;
use crate::failure::Failure;
use crate::reply::Outcome;

const PRELUDE: &str = include_str!("prelude.lua");

thread_local! {
    static ENGINE: Engine = Engine::new().expect("Lua starts");
}

struct Engine {
    lua: Lua,
    /// The compiled scripts, by SHA-1.
    scripts: RefCell<HashMap<Vec<u8>, Function>>,
    /// Calls a script with its keys and arguments.
    run: Function,
}

impl Engine {
    fn new() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        // Little is alive between two calls, and each garbage collection cycle visits all scripts. A longer
        // pause would be slower, since the garbage would not fit in the processor's cache.
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(300)));
        let dispatch = call::function(&lua)?;
        let sha1hex = lua.create_function(|_, text: LuaString| {
            Ok(sha1_smol::Sha1::from(&text.as_bytes()[..])
                .digest()
                .to_string())
        })?;
        let prelude = lua.load(PRELUDE).set_name("@prelude");
        let run = prelude.call((dispatch, sha1hex))?;
        Ok(Self {
            lua,
            scripts: RefCell::default(),
            run,
        })
    }

    /// Compiles a script, unless this thread has compiled it before.
    fn script(&self, sha: &[u8], text: &[u8]) -> Result<Function, Failure> {
        if let Some(script) = self.scripts.borrow().get(sha) {
            return Ok(script.clone());
        }
        let chunk = self.lua.load(text).set_name("@user_script");
        let compiled = chunk.set_mode(ChunkMode::Text).into_function();
        let script = compiled.map_err(|error| {
            let text = error.to_string();
            let reason = text.strip_prefix("syntax error: ").unwrap_or(&text);
            Failure::from(format!(
                "ERR Error compiling script (new function): {reason}"
            ))
        })?;
        let mut scripts = self.scripts.borrow_mut();
        scripts.insert(sha.to_vec(), script.clone());
        Ok(script)
    }

    fn run(&self, script: &Function, keys: &[&[u8]], argv: &[&[u8]]) -> mlua::Result<Outcome> {
        let table = |words: &[&[u8]]| {
            let words = words.iter().map(|word| Bytes(word));
            self.lua.create_sequence_from(words)
        };
        let args = (script, table(keys)?, table(argv)?);
        let (result, error): (Value, Option<LuaString>) = self.run.call(args)?;
        match error {
            Some(error) => Ok(Err(error.to_string_lossy().into())),
            None => Ok(Ok(to_reply(&result)?)),
        }
    }
}

/// Compiles a script to check whether it is valid.
pub(crate) fn compile(sha: &[u8], text: &[u8]) -> Result<(), Failure> {
    ENGINE.with(|engine| engine.script(sha, text)).map(drop)
}

/// Runs a script that the server stores.
pub(crate) fn run(core: &mut Core, sha: &[u8], keys: &[&[u8]], argv: &[&[u8]]) -> Outcome {
    ENGINE.with(|engine| {
        let text = core.scripts.get(sha);
        let script = engine.script(sha, text.map_or(b"", |text| text))?;
        core.in_script = true;
        CURRENT.replace(mem::take(core));
        let outcome = engine.run(&script, keys, argv);
        *core = CURRENT.take();
        core.in_script = false;
        outcome
            .unwrap_or_else(|error| Err(Failure::from(format!("ERR {error}"))))
            .map_err(|Failure(text)| {
                let sha = String::from_utf8_lossy(sha);
                format!("{text} script: {sha}, on @user_script.").into()
            })
    })
}
