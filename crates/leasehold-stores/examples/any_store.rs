//! Takes a lock of any store, by URL: `cargo run --example any_store -- redis://10.0.0.1 deploy`.
#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::error::Error;

use leasehold::blocking::Client;
use leasehold_stores::Connect as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: any_store URL NAME".into());
    };
    let locks = Client::connect(&url)?;
    let guard = locks.lock(&name).acquire()?;
    println!("{name}: held with fence {}", guard.fence());
    guard.release()?;
    Ok(())
}
