import { describe, expect, it } from "vitest";
import { aenv } from "./testing/cli.ts";

describe("aenv", () => {
  it("prints help with examples and exit codes with --help and without arguments", async () => {
    for (const argv of [[], ["--help"], ["help"]]) {
      const { code, stdout, stderr } = await aenv(argv);
      expect(code).toBe(0);
      expect(stderr).toBe("");
      expect(stdout).toContain("$ aenv init my-env");
      expect(stdout).toMatch(/69 +the address cannot be reached/);
    }
  });

  const words = ["init", "run", "call", "build", "server", "push", "pull", "list", "get", "env", "instance", "token", "login", "config"];
  it.each([...words, "version"])("prints help with examples for %s", async (command) => {
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

  const groups = {
    config: ["show", "get", "set", "init", "load", "export", "reset", "path"],
    env: ["versions", "release", "visibility", "delete"],
    instance: ["create", "list", "get", "logs", "events", "reset", "fork", "renew", "presign", "delete"],
    token: ["create", "list", "revoke"],
  };
  const subcommands = Object.entries(groups).flatMap(([group, commands]) => commands.map((command) => [group, command] as const));
  it.each(subcommands)("prints help with examples for %s %s", async (group, command) => {
    const { code, stdout } = await aenv([group, command, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`$ aenv ${group} ${command}`);
  });

  it("accepts the alias of a command", async () => {
    for (const argv of [
      ["up", "--help"],
      ["help", "up"],
    ]) {
      expect((await aenv(argv)).stdout).toContain("Usage: aenv server|up");
    }
    expect((await aenv(["instances", "--help"])).stdout).toContain("$ aenv instance list");
    expect((await aenv(["instance", "info", "--help"])).stdout).toContain("$ aenv instance get");
  });

  it("suggests the nearest command for a typo and exits with 2", async () => {
    const { code, stdout, stderr } = await aenv(["biuld"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("unknown command 'biuld'");
    expect(stderr).toContain("Did you mean build?");
  });

  it("names the command's help for a wrong option", async () => {
    const { code, stderr } = await aenv(["run", "--prot", "1"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Did you mean --port?");
    expect(stderr).toContain("aenv run --help");
    expect((await aenv(["bench", "data", "tau2"])).stderr).toContain("aenv bench data --help");
  });

  it.each([
    [["server", "--port", "8080"], "--control-port and --data-port"],
    [["push", "--url", "http://127.0.0.1:8080"], "--system-url http://HOST:8080"],
    [["instance", "list", "--url=http://127.0.0.1:8080"], "--system-url http://HOST:8080"],
  ])("names what is meant by the option of %j", async (argv, meant) => {
    const { code, stderr } = await aenv(argv);
    expect(code).toBe(2);
    expect(stderr).toContain(meant);
    expect(stderr).not.toContain("Did you mean");
  });

  it.each([
    ["rollout", 69],
    ["test", 2],
  ])("names the built-in environment that is meant by a mistyped name, for %s", async (command, code) => {
    const ended = await aenv([command, "mini-termnal"], { env: { AENV_SYSTEM_URL: "http://127.0.0.1:9" } });
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(/→ Did you mean .*mini-terminal\?/)]);
  });

  it.each(["runs", "trainer", "instance"])("says that %s needs one of its commands", async (group) => {
    const { code, stderr } = await aenv([group]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: `✖ 'aenv ${group}' needs one of its commands\n→ See: aenv ${group} --help\n` });
  });

  it("does not call another address than the server that is named", async () => {
    const { code, stderr } = await aenv(["call", "add", "--system-url", "http://127.0.0.1:9"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--instance ID or a service with --service NAME");
  });

  it("prints an error also as JSON when JSON was requested", async () => {
    const { code, stdout, stderr } = await aenv(["run", "--json", "--work-dir", "/nowhere"]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: "command.usage", message: "there is no folder /nowhere" });
    expect(stderr).toContain("✖ there is no folder /nowhere");
  });

  it.each([["--json"], ["-o", "json"], ["--output", "json"], ["--output=json"]])("prints JSON with %s %s", async (...argv) => {
    const { stdout } = await aenv(["instance", "list", "--version", "1", ...argv.filter(Boolean)]);
    expect(JSON.parse(stdout).error.message).toBe("--version needs --name");
  });

  it("prints its version with --version, -V and version", async () => {
    const [option, short, json] = [await aenv(["--version"]), await aenv(["version", "-s"]), await aenv(["version", "--json"])];
    expect(option.stdout).toBe(short.stdout);
    expect(JSON.parse(json.stdout)).toMatchObject({ version: short.stdout.trim(), node: process.versions.node });
    expect((await aenv(["version"])).stdout).toContain(short.stdout.trim());
  });
});

describe("an error", () => {
  const nowhere = ["--system-url", "http://127.0.0.1:9"];
  it.each([
    [["instance", "create", "nope", ...nowhere]],
    [["push", ...nowhere]],
    [["pull", "nope", ...nowhere]],
    [["call", "add", "--url", "http://127.0.0.1:9"]],
    [["call", "--list", "--url", "http://127.0.0.1:9"]],
    [["call", "add", "--timeout", "x"]],
    [["server", "--control-port", "x"]],
    [["server", "--blob-bytes", "lots"]],
    [["config", "set", "hub_config.timeout", "soon"]],
    [["init", "Bad_Name"]],
  ])("of %j names the problem once, and the allowed values", async (argv) => {
    const { code, stderr } = await aenv(argv, { env: { HOME: "/nonexistent" } });
    expect(code).not.toBe(0);
    expect(stderr).not.toMatch(/could not [^:]*: could not|invalid[. ]+invalid|Invalid input/i);
    for (const advice of ["aenv run", "aenv server"]) expect(stderr.split(advice).length).toBeLessThan(3);
  });
});
