import { describe, expect, it } from "vitest";
import { aenv, installedTree } from "../testing/cli.ts";

const source = 'import { registerTool } from "aenvironment";\nregisterTool({ name: "ask" }, () => 1);\n';
const project = (config: string) => installedTree({ "config.json": config, "src/index.ts": source });

describe("a project's config.json", { timeout: 60_000 }, () => {
  it("is built with a warning for a misspelled field, with its line", async () => {
    using tree = project('{\n  "name": "my-env",\n  "version": "1.0.0",\n  "deployConfg": { "ttl": "1h" },\n  "own": 1\n}');
    const { code, stderr } = await aenv(["build"], { cwd: tree.path });
    expect(stderr).toBe("! config.json:4:3 deployConfg is not a known field and has no effect; did you mean deployConfig?\n");
    expect(code).toBe(0);
  });

  it("has a hint when a required field is misspelled", async () => {
    using tree = project('{\n  "name": "my-env",\n  "verison": "1.0.0"\n}');
    const { code, stderr } = await aenv(["build"], { cwd: tree.path });
    expect(code).toBe(1);
    expect(stderr).toContain("version is missing");
    expect(stderr).toContain("did you mean version?");
  });

  it.each([["run"], ["build"], ["push"]])("is refused by %s with the line when its version is invalid", async (command) => {
    using tree = project('{\n  "name": "my-env",\n  "version": "latest"\n}');
    const { code, stderr } = await aenv([command], { cwd: tree.path });
    expect(code).toBe(1);
    expect(stderr).toContain("config.json:3:14 version: 'latest' is not a version; a version looks like 1.0.0");
  });
});

describe("--version", () => {
  it.each([
    ["push", "--version", "1.x"],
    ["init", "other", "--version", "banana"],
    ["init", "other", "--version", "a@1"],
  ])("that is invalid is refused with 2: %s %s %s", async (...argv) => {
    using tree = project('{ "name": "my-env", "version": "1.0.0" }');
    const { code, stderr } = await aenv(argv, { cwd: tree.path });
    expect(code).toBe(2);
    expect(stderr).toContain("is not a version; a version looks like 1.0.0");
  });
});
