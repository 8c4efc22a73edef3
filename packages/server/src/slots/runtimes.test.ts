import { MemoryEngine, noAbilities } from "@aenv/sandbox";
import { expect, it, onTestFinished } from "vitest";
import { RuntimePolicy } from "./runtimes.ts";

const oci = { name: "oci", can: { ...noAbilities, runtimes: ["runc", "runsc"] } } as const;

it("an environment runs with the runtime that it asks for, and else with that of the server", () => {
  const policy = new RuntimePolicy({ engine: oci, runtime: "runc", runcOwners: [] });
  expect([policy.runtimeOf(["ada"]), policy.runtimeOf(["ada"], "runc"), policy.runtimeOf(["ada"], "runsc")]).toEqual([
    undefined,
    undefined,
    "runsc",
  ]);
});

it("code of owners that are not listed runs with runsc, whatever its environment asks for", () => {
  const policy = new RuntimePolicy({ engine: oci, runtime: "runc", runcOwners: ["ada"] });
  expect([policy.runtimeOf(["ada"], "runc"), policy.runtimeOf(["eve"]), policy.runtimeOf(["eve"], "runc")]).toEqual([
    undefined,
    "runsc",
    "runsc",
  ]);
});

it("a server that always runs runsc lets only listed owners ask for runc", () => {
  const policy = new RuntimePolicy({ engine: oci, runtime: "runsc", runcOwners: ["ada"] });
  expect([policy.runtimeOf(["ada"]), policy.runtimeOf(["ada"], "runc"), policy.runtimeOf(["eve"], "runc")]).toEqual([
    undefined,
    "runc",
    undefined,
  ]);
});

it("an instance is trusted only if both its owner and the publisher of its environment are listed", () => {
  const policy = new RuntimePolicy({ engine: oci, runtime: "runc", runcOwners: ["ada", "bob"] });
  expect(
    [
      ["ada", "bob"],
      ["ada", "eve"],
      ["eve", "ada"],
    ].map((owners) => policy.runtimeOf(owners, "runc")),
  ).toEqual([undefined, "runsc", "runsc"]);
});

it("nobody gets runc on a server that runs runsc and lists no owners", () => {
  const policy = new RuntimePolicy({ engine: oci, runtime: "runsc", runcOwners: [] });
  expect([policy.runtimeOf(["ada"]), policy.runtimeOf(["ada"], "runc"), policy.runtimeOf(["ada"], "runsc")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

it("a policy that the engine cannot enforce is refused", () => {
  const engine = new MemoryEngine({ start: () => () => undefined });
  onTestFinished(() => engine.close());
  expect(() => new RuntimePolicy({ engine, runtime: "runc", runcOwners: ["ada"] })).toThrow(
    "the engine 'memory' does not run sandboxes with runsc",
  );
  const policy = new RuntimePolicy({ engine, runtime: "runc", runcOwners: [] });
  expect(policy.runtimeOf(["ada"], "runc")).toBeUndefined();
  expect(() => policy.runtimeOf(["ada"], "runsc")).toThrow('deployConfig.runtime is "runsc"');
});
