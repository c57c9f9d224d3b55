use std::path::{Path, PathBuf};

/// The folders of the project.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// The workspace of the `cargo` that runs us: asked at run time, since a build folder may be
    /// shared by several checkouts.
    pub(crate) fn find() -> Result<Self, String> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .ok_or("CARGO_MANIFEST_DIR is not set: start it as `cargo xtask`")?;
        let root = Path::new(&manifest)
            .parent()
            .ok_or("the folder of xtask has no parent")?
            .to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            // Relative to where cargo was called, as cargo takes it.
            Some(folder) => std::path::absolute(folder).map_err(|error| error.to_string())?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for build products. What the tests need in addition to the system is there, too, so that
    /// `cargo clean` removes it all.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }
}
