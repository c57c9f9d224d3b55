// Loads the native part: from the package of this platform, or from a build next to this package.
"use strict";
const { existsSync } = require("node:fs");
const { join } = require("node:path");

function platform() {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return `linux-${process.arch}-${isGlibc ? "gnu" : "musl"}`;
}

function load() {
  const built = join(__dirname, "..", "leasehold.node");
  if (existsSync(built)) return require(built);
  const name = `@leasehold/${platform()}`;
  try {
    return require(name);
  } catch (cause) {
    const text =
      `cannot load ${name}: either there is no build of leasehold for this platform, or the package was installed ` +
      "without its optional dependencies; install again with `npm install --include=optional leasehold`";
    throw new Error(text, { cause });
  }
}

module.exports = load();
