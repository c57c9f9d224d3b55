//! Tells the linker that Node defines the missing symbols.

fn main() {
    napi_build::setup();
}
