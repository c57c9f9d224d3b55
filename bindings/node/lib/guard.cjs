// A held lock, and several.
"use strict";
const { calls } = require("./calls.cjs");
const { Hold, orThrow } = require("./hold.cjs");

class Guard extends Hold {
  renew() {
    return calls.start((loop, id) => this._native.renew(loop, id));
  }

  downgrade() {
    return calls.start((loop, id) => this._native.downgrade(loop, id));
  }

  async reenter() {
    return new Guard(await calls.start((loop, id) => this._native.reenter(loop, id)));
  }

  handle() {
    return orThrow(this._native.handle());
  }

  intoHandle() {
    const handle = orThrow(this._native.detach());
    this._end(() => ({ text: "still_held" }));
    return handle;
  }
}

class GuardSet extends Hold {
  get fences() {
    const { names, fences } = this._native;
    return Object.fromEntries(names.map((name, at) => [name, fences[at]]));
  }
}

module.exports = { Guard, GuardSet };
