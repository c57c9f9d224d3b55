//! The environment that builds and tests the Python package.

use std::path::PathBuf;

use super::folder;
use crate::python::Venv;
use crate::workspace::Workspace;

/// The tools, and the libraries that the tests use. `hatchling` unpacks the sources of redis-py.
pub(super) const PACKAGES: [&str; 21] = [
    "maturin==1.16.0",
    "ziglang==0.15.2",
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "pytest-timeout==2.4.0",
    "mypy==2.4.1",
    "pyright==1.1.414",
    "hatchling==1.33.0",
    "redis==8.1.0",
    "anyio==4.16.0",
    "uvloop==0.23.0",
    "gunicorn==27.0.1",
    "celery==5.7.0",
    "Django==5.2.19",
    "fastapi==0.165.0",
    "httpx==0.28.1",
    "APScheduler==3.11.3",
    "pottery==3.0.1",
    "python-redis-lock==4.0.1",
    "redlock-py==1.0.8",
    "filelock==4.3.1",
];

pub(super) fn venv(workspace: &Workspace) -> Venv {
    Venv::new(folder(workspace).join("python-venv"), PACKAGES)
}

/// The folder of the package.
pub(super) fn source(workspace: &Workspace) -> PathBuf {
    workspace.root().join("bindings/python")
}
