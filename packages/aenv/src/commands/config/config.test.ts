import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { aenv } from "../../testing/cli.ts";

const FILE = ".aenv/cli_config.json";

function config(tree: Tree, ...argv: string[]) {
  return aenv(["config", ...argv], { cwd: join(tree.path, "elsewhere"), env: { HOME: tree.path } });
}

function read(tree: Tree, name = FILE) {
  return JSON.parse(readFileSync(join(tree.path, name), "utf8"));
}

describe("config", () => {
  it("creates nothing unless it is asked to write", async () => {
    using tree = temporaryTree();
    for (const argv of [["show"], ["get", "owner"], ["path"]]) expect((await config(tree, ...argv)).code).toBe(0);
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("writes for the owner's eyes only", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "owner", "ada");
    expect(statSync(join(tree.path, FILE)).mode & 0o777).toBe(0o600);
    await config(tree, "export", "--output", join(tree.path, "out.json"));
    expect(statSync(join(tree.path, "out.json")).mode & 0o777).toBe(0o600);
  });

  it("sets one value and keeps all others, the unknown ones too", async () => {
    using tree = temporaryTree({ [FILE]: { future: { a: 1 }, hub_config: { hub_backend: "http://x", extra: true } } });
    const { code, stdout } = await config(tree, "set", "hub_config.timeout", "60", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ key: "hub_config.timeout", value: 60 });
    expect(read(tree)).toEqual({ future: { a: 1 }, hub_config: { hub_backend: "http://x", extra: true, timeout: 60 } });
  });

  it("leads from old spellings to the right key", async () => {
    using tree = temporaryTree();
    const old = await config(tree, "set", "hub_backend", "http://x");
    expect(old.code).toBe(2);
    expect(old.stderr).toContain("Did you mean hub_config.hub_backend?");
    expect((await config(tree, "set", "build.registry.host", "x")).stderr).toContain("build_config.registry.host?");
    expect((await config(tree, "set", "zzz", "x")).stderr).toContain("The settings are: global_mode");
    expect(existsSync(join(tree.path, ".aenv"))).toBe(false);
  });

  it("refuses a value that does not fit and leaves the file as it was", async () => {
    using tree = temporaryTree();
    const { code, stderr } = await config(tree, "set", "hub_config.timeout", "soon");
    expect(code).toBe(2);
    expect(stderr).toContain("hub_config.timeout");
    expect(existsSync(join(tree.path, FILE))).toBe(false);
  });

  it("masks secrets unless told to reveal them", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "build_config.registry.password", "hunter2");
    for (const argv of [["show"], ["show", "--json"], ["get", "build_config.registry.password"], ["get", "build_config"]]) {
      const { stdout } = await config(tree, ...argv);
      expect(stdout).not.toContain("hunter2");
      expect(stdout).toContain("********");
    }
    expect((await config(tree, "set", "hub_config.api_key", "k3y")).stdout).not.toContain("k3y");
    expect((await config(tree, "get", "build_config.registry.password", "--reveal")).stdout).toBe("hunter2\n");
  });

  it("shows what environment variables change, masked where it is a secret", async () => {
    const env = { HOME: "/nowhere", HUB_BACKEND: "http://other", AENV_API_KEY: "k3y" };
    const { stdout } = await aenv(["config", "show"], { env });
    expect(stdout).toMatch(/hub_config.hub_backend +"http:\/\/other" +HUB_BACKEND/);
    expect(stdout).not.toContain("k3y");
  });

  it("fails for a setting that is not there", async () => {
    using tree = temporaryTree();
    expect((await config(tree, "get", "hub_config.nothing")).code).toBe(1);
    expect((await config(tree, "get", "nothing")).code).toBe(2);
  });

  it("exports without secrets, and loads what it exported", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "hub_config.api_key", "k3y");
    await config(tree, "set", "owner", "ada");
    const out = join(tree.path, "out.json");
    expect((await config(tree, "export", "--output", out)).code).toBe(0);
    expect(readFileSync(out, "utf8")).not.toMatch(/k3y|api_key|password/);
    expect((await config(tree, "export", "--output", out)).stderr).toContain("--force");
    await config(tree, "set", "owner", "bob");
    expect((await config(tree, "load", out)).code).toBe(0);
    expect(read(tree).owner).toBe("ada");
  });

  it("never overwrites a file that it cannot read, and points at the line", async () => {
    const broken = '{\n  "owner": ada\n}';
    using tree = temporaryTree({ [FILE]: broken });
    const { code, stderr } = await config(tree, "set", "owner", "bob");
    expect(code).toBe(1);
    expect(stderr).toContain("cli_config.json:2:12");
    expect(readFileSync(join(tree.path, FILE), "utf8")).toBe(broken);
  });

  it("asks before a reset, and where nobody can be asked wants --force", async () => {
    using tree = temporaryTree({ [FILE]: { owner: "ada" } });
    const { code, stderr } = await config(tree, "reset");
    expect(code).toBe(2);
    expect(stderr).toContain("--force");
    expect(read(tree)).toEqual({ owner: "ada" });
    expect((await config(tree, "reset", "--force")).code).toBe(0);
    expect(read(tree)).toMatchObject({ owner: null, hub_config: { timeout: 30 } });
  });

  it("begins a file where it is told to, but not over another", async () => {
    using tree = temporaryTree();
    expect((await config(tree, "init")).code).toBe(0);
    expect(read(tree).global_mode).toBe("local");
    expect((await config(tree, "init")).code).toBe(1);
    const path = await config(tree, "path", "--json");
    expect(JSON.parse(path.stdout)).toEqual({ path: join(tree.path, FILE), exists: true });
  });
});
