import { noAbilities } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import { programOf, templateOf } from "./program.ts";

const withTemplates = (can: boolean) => (can ? { templates: { owners: () => [] } } : {});
const config = (podTemplate?: string) => ({ deployConfig: podTemplate === undefined ? {} : { podTemplate } }) as never;

it("an environment gets the template of the operator that it names, unless it is the default or that of two containers", () => {
  expect(templateOf(config("gpu"), withTemplates(true))).toBe("gpu");
  for (const name of [undefined, "singleContainer", "SingleContainer", "dualContainer", "DualContainer"])
    expect(templateOf(config(name), withTemplates(true))).toBeUndefined();
  expect(templateOf(config("gpu"), withTemplates(false))).toBeUndefined();
});

describe("arguments", () => {
  const engine = (templates: boolean) => ({
    name: templates ? "kubernetes" : "oci",
    can: { ...noAbilities, images: true },
    ...withTemplates(templates),
  });
  const image = { id: "1", type: "image", content: "registry.example/shop:1" };
  const program = (config: object, templates = true) =>
    programOf({ name: "shop", version: "1.0.0", config: config as never, artifacts: [image], bundleDigest: null }, engine(templates), [
      "--fast",
    ]);

  it("follow those of the command", () => {
    for (const templates of [true, false])
      expect(program({ runtime: { command: ["serve", "{port}"] } }, templates)?.spec.command).toEqual(["serve", "{port}", "--fast"]);
  });

  it("of an image's own server are given to it by engines with templates, and refused by others", () => {
    expect(program({ deployConfig: { port: 80 } })?.spec).toMatchObject({ command: [], arguments: ["--fast"] });
    expect(() => program({ deployConfig: { port: 80 } }, false)).toThrow(
      /takes no arguments with the engine 'oci'; name its program in runtime.command/,
    );
  });

  it("of an image in which nothing is started are refused", () => {
    expect(() => program({})).toThrow(/shop@1.0.0 is an image .* takes no arguments because nothing is started in it/);
  });
});
