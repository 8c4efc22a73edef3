import { noAbilities } from "@aenv/sandbox";
import { expect, it } from "vitest";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { RuntimePolicy } from "./runtimes.ts";
import { bundleRequestFor } from "./start-request.ts";

const engine = { name: "oci", can: { ...noAbilities, runtimes: ["runc", "runsc"] } } as const;

it("an instance of a trusted environment runs with runsc if its owner is not trusted", () => {
  const runtimes = new RuntimePolicy({ engine, runtime: "runc", runcOwners: ["ada"] });
  const identity = { name: "shop", version: "1.0.0", owner: "ada" };
  const environment = { ...identity, bundleDigest: "sha256:1", metadata: null, config: identity, artifacts: [] } as unknown;
  const initial = { id: "shop-1", variables: {}, task: null, seed: 1 };
  const options = { isolation: "instance", runtimes, resources: undefined } as const;
  const runtimeFor = (owner: string) =>
    bundleRequestFor(environment as EnvironmentVersion, owner, initial as never, engine, options).runtime;
  expect([runtimeFor("ada"), runtimeFor("eve")]).toEqual([undefined, "runsc"]);
});
