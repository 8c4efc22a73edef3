import { expect, it } from "vitest";
import { environmentLimits } from "./environment-limits.ts";

const can = (templates: boolean) => ({ can: { templates } as never });
const environment = (deployConfig: object) => ({ name: "shop", version: "1.0.0", config: { deployConfig } as never });
const asked = { cpu: "1C", memory: "2Gi", ephemeralStorage: "5G" };

it("an environment has the limits that it asks for, on engines with templates", () => {
  expect(environmentLimits(environment(asked), can(true), {})).toEqual({ cpus: 1, memoryMb: 2_048, diskMb: 4_768 });
  expect(environmentLimits(environment({ cpu: "500m" }), can(true), { memoryMb: 512 })).toEqual({ cpus: 0.5 });
  expect(environmentLimits(environment(asked), can(false), {})).toBeUndefined();
  expect(environmentLimits(environment({}), can(true), {})).toBeUndefined();
});

it("limits that all sandboxes have anyway are none of its own, so that it can use blank processes", () => {
  expect(environmentLimits(environment(asked), can(true), { cpus: 1, memoryMb: 2_048, diskMb: 4_768 })).toBeUndefined();
});

it("an environment that asks for more than the operator allows, or for what is no amount, is refused with the field", () => {
  expect(() => environmentLimits(environment(asked), can(true), { memoryMb: 1_024 })).toThrow(
    "deployConfig.memory of shop@1.0.0 is '2Gi', and this server allows 1024 MiB (its setting memoryMb)",
  );
  expect(() => environmentLimits(environment({ cpu: "2" }), can(true), { cpus: 1.5 })).toThrow(
    /this server allows 1.5 \(its setting cpus\)/,
  );
  expect(() => environmentLimits(environment({ memory: "500m" }), can(true), {})).toThrow(/is '500m', which is not a size, such as "2Gi"/);
});
