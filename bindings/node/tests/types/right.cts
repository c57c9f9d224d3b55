// The same package by `require`.
import leasehold = require("leasehold");

export async function held(): Promise<boolean> {
  const guard: leasehold.Guard = await leasehold.connect("redis://a").lock("job");
  return guard.valid;
}
