import { prefixOf } from "../network/subnet.ts";
import { describeEgress } from "../network/testing/egress-claims.ts";

for (const runtime of ["runc", "runsc"] as const)
  describeEgress(`the oci engine with ${runtime}`, {
    component: runtime,
    start: async () => ({ socket: null, [Symbol.asyncDispose]: async () => undefined }),
    runtime,
    prefix: prefixOf,
    withoutPolicy: ["ECONNREFUSED", "ENOTFOUND"],
  });
