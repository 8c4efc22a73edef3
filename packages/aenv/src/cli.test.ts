import { describe, expect, it } from "vitest";
import { aenv } from "./testing/cli.ts";

describe("aenv", () => {
  it("prints help with examples and exit codes when asked, and when asked nothing", async () => {
    for (const argv of [[], ["--help"], ["help"]]) {
      const { code, stdout, stderr } = await aenv(argv);
      expect(code).toBe(0);
      expect(stderr).toBe("");
      expect(stdout).toContain("$ aenv init my-env");
      expect(stdout).toMatch(/69 +no environment answers/);
    }
  });

  it.each(["init", "run", "call", "build", "config", "version"])("prints help with examples for %s", async (command) => {
    for (const argv of [
      [command, "--help"],
      ["help", command],
    ]) {
      const { code, stdout } = await aenv(argv);
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: aenv ${command}`);
      expect(stdout).toContain(`$ aenv ${command}`);
    }
  });

  it.each(["show", "get", "set", "init", "load", "export", "reset", "path"])("prints help with examples for config %s", async (command) => {
    const { code, stdout } = await aenv(["config", command, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`$ aenv config ${command}`);
  });

  it("suggests the nearest command for a typo and ends with 2", async () => {
    const { code, stdout, stderr } = await aenv(["biuld"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("unknown command 'biuld'");
    expect(stderr).toContain("Did you mean build?");
  });

  it("points at the command's help for a wrong option", async () => {
    const { code, stderr } = await aenv(["run", "--prot", "1"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Did you mean --port?");
    expect(stderr).toContain("aenv run --help");
  });

  it("tells an error as JSON too when JSON was asked for", async () => {
    const { code, stdout, stderr } = await aenv(["run", "--json", "--work-dir", "/nowhere"]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: "command.usage", message: "there is no folder /nowhere" });
    expect(stderr).toContain("✖ there is no folder /nowhere");
  });

  it("says its version three ways", async () => {
    const [option, short, json] = [await aenv(["--version"]), await aenv(["version", "-s"]), await aenv(["version", "--json"])];
    expect(option.stdout).toBe(short.stdout);
    expect(JSON.parse(json.stdout)).toMatchObject({ version: short.stdout.trim(), node: process.versions.node });
    expect((await aenv(["version"])).stdout).toContain(short.stdout.trim());
  });
});
