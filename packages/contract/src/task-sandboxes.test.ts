import { expect, it } from "vitest";
import { checkConfig } from "./config.ts";
import { isDualContainer } from "./task-sandboxes.ts";

it("a template with two containers is written in any case", () => {
  for (const name of ["DualContainer", "dualcontainer", "dualContainer", "DUALCONTAINER", "dual-container"])
    expect([isDualContainer({ podTemplate: name }), isDualContainer({ templateType: name })]).toEqual([true, true]);
  expect([isDualContainer({ podTemplate: "singleContainer" }), isDualContainer({}), isDualContainer(undefined)]).toEqual([
    false,
    false,
    false,
  ]);
});

it("a config names images by beginnings, and invalid entries are reported with their path", () => {
  const configOf = (taskSandboxes: object) => checkConfig({ name: "a", version: "1", deployConfig: { taskSandboxes } });
  expect(
    configOf({ images: ["registry.example.com/team/*", "python:3.12"], atOnce: 2, memory: "2Gi", capabilities: "docker", egress: "none" })
      .ok,
  ).toBe(true);
  const checked = configOf({ images: ["a b"], atOnce: 0, memory: "lots", capabilities: ["CAP_SYS_ADMIN"] });
  expect(checked.ok ? [] : checked.problems.map(({ path }) => path.join("."))).toEqual([
    "deployConfig.taskSandboxes.images.0",
    "deployConfig.taskSandboxes.atOnce",
    "deployConfig.taskSandboxes.memory",
    "deployConfig.taskSandboxes.capabilities",
  ]);
});
