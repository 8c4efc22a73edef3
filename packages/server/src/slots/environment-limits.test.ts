import { expect, it } from "vitest";
import { environmentLimits } from "./environment-limits.ts";

const can = (...ownLimits: string[]) => ({ can: { ownLimits } as never });
const all = can("cpus", "memoryMb", "diskMb");
const environment = (deployConfig: object) => ({ name: "shop", version: "1.0.0", config: { deployConfig } as never });
const asked = { cpu: "1C", memory: "2Gi", ephemeralStorage: "5G" };

it("an environment has the limits that it asks for, if the engine can limit single sandboxes", () => {
  expect(environmentLimits(environment(asked), all, {})).toEqual({ cpus: 1, memoryMb: 2_048, diskMb: 4_768 });
  expect(environmentLimits(environment({ cpu: "500m" }), all, { memoryMb: 512 })).toEqual({ cpus: 0.5 });
  expect(environmentLimits(environment(asked), can(), {})).toBeUndefined();
  expect(environmentLimits(environment(asked), can("cpus", "memoryMb"), {})).toEqual({ cpus: 1, memoryMb: 2_048 });
  expect(environmentLimits(environment({}), all, {})).toBeUndefined();
});

it("an environment has the /dev/shm that it asks for, if it is a part of its memory", () => {
  const engine = can("memoryMb", "shmMb");
  expect(environmentLimits(environment({ shmMb: 512 }), engine, { memoryMb: 2_048 })).toEqual({ shmMb: 512 });
  expect(environmentLimits(environment({ shmMb: 512 }), can(), { memoryMb: 256 })).toBeUndefined();
  expect(() => environmentLimits(environment({ shmMb: 1_024, memory: "1Gi" }), engine, { memoryMb: 2_048 })).toThrow(
    "deployConfig.shmMb of shop@1.0.0 is 1024, and its sandboxes have 1024 MiB of memory, of which /dev/shm is a part; choose less, or more 'memory' beside it",
  );
});

it("limits that all sandboxes have anyway are none of its own, so that it can use blank processes", () => {
  expect(environmentLimits(environment(asked), all, { cpus: 1, memoryMb: 2_048, diskMb: 4_768 })).toBeUndefined();
});

it("an environment that asks for more than the operator allows, or for what is no amount, is refused with the field", () => {
  expect(() => environmentLimits(environment(asked), all, { memoryMb: 1_024 })).toThrow(
    "deployConfig.memory of shop@1.0.0 is '2Gi', and this server allows 1024 MiB (its setting memoryMb)",
  );
  expect(() => environmentLimits(environment({ cpu: "2" }), all, { cpus: 1.5 })).toThrow(/this server allows 1.5 \(its setting cpus\)/);
  expect(() => environmentLimits(environment({ memory: "500m" }), all, {})).toThrow(/is '500m', which is not a size, such as "2Gi"/);
});
