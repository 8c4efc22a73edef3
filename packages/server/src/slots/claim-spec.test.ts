import { noAbilities } from "@aenv/sandbox";
import { expect, it } from "vitest";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { claimSpecFor } from "./claim-spec.ts";
import { RuntimePolicy } from "./runtimes.ts";

const engine = { name: "oci", can: { ...noAbilities, runtimes: ["runc", "runsc"] } } as const;

it("an instance of a trusted environment runs with runsc if its owner is not trusted", () => {
  const runtimes = new RuntimePolicy({ engine, runtime: "runc", runcOwners: ["ada"] });
  const identity = { name: "shop", version: "1.0.0", owner: "ada" };
  const environment = { ...identity, bundleDigest: "sha256:1", metadata: null, config: identity, artifacts: [] } as unknown;
  const initial = { id: "shop-1", variables: {}, task: null, seed: 1 };
  const runtimeFor = (owner: string) =>
    claimSpecFor(environment as EnvironmentVersion, owner, initial as never, "instance", runtimes, undefined, engine).runtime;
  expect([runtimeFor("ada"), runtimeFor("eve")]).toEqual([undefined, "runsc"]);
});
