//! Lets the linker leave the symbols of Node open.

fn main() {
    napi_build::setup();
}
