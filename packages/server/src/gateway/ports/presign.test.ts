import { type EnvironmentConfig, parseConfig } from "@aenv/contract";
import { noAbilities } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import type { InstanceRow } from "../../instances/row.ts";
import { containerOf, portProblem } from "./presign.ts";

const can = { ...noAbilities, ports: true };
const configOf = (deployConfig: object): EnvironmentConfig => parseConfig({ name: "shop", version: "1.0.0", deployConfig });

describe("a link can be created", () => {
  it.each([{ port: 3000 }, { ports: [80, 3000] }, { service: { port: 3000 } }])("to a port that the config lists: %j", (deployConfig) => {
    expect(portProblem(configOf(deployConfig), 3000, { can })).toBeNull();
  });

  it("to any port of a sandbox with its own network", () => {
    expect(portProblem(configOf({}), 3000, { can: { ...can, isolates: true } })).toBeNull();
  });
});

describe("a link without the name of a container leads", () => {
  const second = { taskSandboxes: { hasSecond: true } } as Pick<InstanceRow, "taskSandboxes">;
  const opens = { taskSandboxes: { hasSecond: false } } as Pick<InstanceRow, "taskSandboxes">;

  it("to the sandbox that commands and files are in", () => {
    expect(containerOf({}, configOf({}), 3000)).toBe("main");
    expect(containerOf(second, configOf({}), 3000)).toBe("second");
    expect(containerOf(opens, configOf({}), 3000)).toBeNull();
  });

  it("to the environment, if its config lists the port", () => {
    for (const row of [{}, second, opens]) expect(containerOf(row, configOf({ ports: [3000] }), 3000)).toBe("main");
  });

  it("also if instances share a process: the sandbox of a task is one instance's own", () => {
    expect(portProblem(configOf({ isolation: "shared" }), 3000, { can }, "second")).toBeNull();
    expect(portProblem(configOf({ isolation: "shared" }), 3000, { can }, "main")).toMatch(/share a process/);
  });
});

describe("no link can be created", () => {
  it("to a port that the config does not list", () => {
    for (const deployConfig of [{}, { port: 80 }, { ports: [80] }]) {
      expect(portProblem(configOf(deployConfig), 3000, { can })).toMatch(/does not list port 3000; add it to deployConfig\.ports/);
    }
  });

  it("if instances share a process", () => {
    expect(portProblem(configOf({ ports: [3000], isolation: "shared" }), 3000, { can })).toMatch(/share a process/);
  });

  it("if the engine cannot tell which process listens", () => {
    expect(portProblem(configOf({ ports: [3000] }), 3000, { can: { ...can, ports: false } })).toMatch(/cannot tell which process/);
  });
});
