import { expect, it } from "vitest";
import { templateOf } from "./program.ts";

const can = (templates: boolean) => ({ can: { templates } as never });
const config = (podTemplate?: string) => ({ deployConfig: podTemplate === undefined ? {} : { podTemplate } }) as never;

it("an environment gets the template of the operator that it names, unless it is the default or that of two containers", () => {
  expect(templateOf(config("gpu"), can(true))).toBe("gpu");
  for (const name of [undefined, "singleContainer", "SingleContainer", "dualContainer", "DualContainer"])
    expect(templateOf(config(name), can(true))).toBeUndefined();
  expect(templateOf(config("gpu"), can(false))).toBeUndefined();
});
