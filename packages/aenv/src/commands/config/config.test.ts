import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { openPlatform } from "../../platform/platform.ts";
import { defaultSettings } from "../../platform/settings.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { aenv } from "../../testing/cli.ts";

const FILE = ".aenv/cli_config.json";

function config(tree: Tree, ...argv: string[]) {
  return aenv(["config", ...argv], { cwd: join(tree.path, "elsewhere"), env: { HOME: tree.path } });
}

function read(tree: Tree, name = FILE) {
  return JSON.parse(readFileSync(join(tree.path, name), "utf8"));
}

describe("config", () => {
  it("creates no file unless a command writes", async () => {
    using tree = temporaryTree();
    for (const argv of [["show"], ["get", "owner"], ["path"]]) expect((await config(tree, ...argv)).code).toBe(0);
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("writes a file that only the user can read", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "owner", "ada");
    expect(statSync(join(tree.path, FILE)).mode & 0o777).toBe(0o600);
    await config(tree, "export", "--output", join(tree.path, "out.json"));
    expect(statSync(join(tree.path, "out.json")).mode & 0o777).toBe(0o600);
  });

  it("sets one value and keeps all others, including unknown ones", async () => {
    using tree = temporaryTree({ [FILE]: { future: { a: 1 }, hub_config: { hub_backend: "http://x", extra: true } } });
    const { code, stdout } = await config(tree, "set", "hub_config.timeout", "60", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ key: "hub_config.timeout", value: 60 });
    expect(read(tree)).toEqual({ future: { a: 1 }, hub_config: { hub_backend: "http://x", extra: true, timeout: 60 } });
  });

  it("suggests the current key for an old one", async () => {
    using tree = temporaryTree();
    const old = await config(tree, "set", "hub_backend", "http://x");
    expect(old.code).toBe(2);
    expect(old.stderr).toContain("Did you mean hub_config.hub_backend?");
    expect((await config(tree, "set", "hub.timeout", "x")).stderr).toContain("hub_config.timeout?");
    expect((await config(tree, "set", "zzz", "x")).stderr).toContain("The settings are: system_url, owner, hub_config, build_config.");
    expect(existsSync(join(tree.path, ".aenv"))).toBe(false);
  });

  it("refuses an invalid value and leaves the file unchanged", async () => {
    using tree = temporaryTree();
    const { code, stderr } = await config(tree, "set", "hub_config.timeout", "soon");
    expect(code).toBe(2);
    expect(stderr).toContain("hub_config.timeout");
    expect(existsSync(join(tree.path, FILE))).toBe(false);
  });

  it("masks secrets without --reveal", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "hub_config.api_key", "hunter2");
    for (const argv of [["show"], ["show", "--json"], ["get", "hub_config.api_key"], ["get", "hub_config"]]) {
      const { stdout } = await config(tree, ...argv);
      expect(stdout).not.toContain("hunter2");
      expect(stdout).toContain("********");
    }
    expect((await config(tree, "set", "hub_config.api_key", "k3y")).stdout).not.toContain("k3y");
    expect((await config(tree, "get", "hub_config.api_key", "--reveal")).stdout).toBe("k3y\n");
  });

  it("shows the values of environment variables, with secrets masked", async () => {
    const env = { HOME: "/nowhere", HUB_BACKEND: "http://other", AENV_API_KEY: "k3y" };
    const { stdout } = await aenv(["config", "show"], { env });
    expect(stdout).toMatch(/hub_config.hub_backend +http:\/\/other +HUB_BACKEND/);
    expect(stdout).not.toContain("k3y");
  });

  it("fails for an unknown setting", async () => {
    using tree = temporaryTree();
    expect((await config(tree, "get", "hub_config.nothing")).code).toBe(1);
    expect((await config(tree, "get", "nothing")).code).toBe(2);
  });

  it("exports without secrets, and loads the exported file", async () => {
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

  it("never overwrites a file that it cannot parse, and prints the line", async () => {
    const broken = '{\n  "owner": ada\n}';
    using tree = temporaryTree({ [FILE]: broken });
    const { code, stderr } = await config(tree, "set", "owner", "bob");
    expect(code).toBe(1);
    expect(stderr).toContain("cli_config.json:2:12");
    expect(readFileSync(join(tree.path, FILE), "utf8")).toBe(broken);
  });

  it("asks before a reset, and needs --force without an interactive terminal", async () => {
    using tree = temporaryTree({ [FILE]: { owner: "ada" } });
    const { code, stderr } = await config(tree, "reset");
    expect(code).toBe(2);
    expect(stderr).toContain("--force");
    expect(read(tree)).toEqual({ owner: "ada" });
    expect((await config(tree, "reset", "--force")).code).toBe(0);
    expect(read(tree)).toMatchObject({ owner: null, hub_config: { timeout: "30s" } });
  });

  it("creates a file at --path, but overwrites none", async () => {
    using tree = temporaryTree();
    expect((await config(tree, "init")).code).toBe(0);
    expect(read(tree)).toEqual({
      system_url: "http://localhost:8080",
      owner: null,
      hub_config: { hub_backend: null, api_key: "", timeout: "30s" },
      build_config: {
        build_args: { socket: "unix:///var/run/docker.sock" },
        registry: { host: "docker.io", namespace: "", username: "", password: "" },
      },
    });
    expect((await config(tree, "init")).code).toBe(1);
    const path = await config(tree, "path", "--json");
    expect(JSON.parse(path.stdout)).toEqual({ path: join(tree.path, FILE), exists: true });
  });

  it("reads a file of the original's command, shows the settings that have an effect, and keeps the rest", async () => {
    const original = {
      global_mode: "local",
      build_config: { type: "local", registry: { password: "hunter2" } },
      hub_config: { hub_backend: "https://localhost:8080", api_key: "", timeout: 90 },
    };
    using tree = temporaryTree({ [FILE]: original });
    const { stdout } = await config(tree, "show");
    expect(stdout).toContain("not used by this command, and kept in the file: global_mode\n");
    expect(stdout).toMatch(/hub_config.timeout +1m30s\n/);
    expect(stdout).toMatch(/hub_config.hub_backend +null\n/);
    expect(stdout).not.toContain("hunter2");
    await config(tree, "set", "owner", "ada");
    expect(read(tree)).toEqual({ ...original, owner: "ada" });
  });
});

// Those of build_config: see build-image.test.ts.
describe("every setting for servers that config show lists has an effect", () => {
  const names = [...Object.keys(defaultSettings), ...Object.keys(defaultSettings.hub_config).map((name) => `hub_config.${name}`)];
  const values: Record<string, { set: string; effect: (platform: ReturnType<typeof openPlatform>) => unknown }> = {
    system_url: { set: "http://aenv.example:9000", effect: ({ url }) => url },
    owner: { set: "ada", effect: ({ owner }) => owner },
    "hub_config.hub_backend": { set: "http://hub.example:9000", effect: ({ hubUrl }) => hubUrl },
    "hub_config.api_key": { set: "k3y", effect: ({ apiKey }) => apiKey },
  };

  it.each(names.filter((name) => !/^(?:hub_config|build_config|hub_config\.timeout)$/.test(name)))("%s", async (name) => {
    using tree = temporaryTree();
    const { set, effect } = values[name] as (typeof values)[string];
    await config(tree, "set", name, set);
    const terminal = { cwd: tree.path, env: { HOME: tree.path } } as unknown as Terminal;
    expect(effect(openPlatform({}, terminal))).toBe(set);
  });

  it("hub_config.timeout", async () => {
    using tree = temporaryTree();
    await config(tree, "set", "hub_config.timeout", "250ms");
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const { code, stderr } = await aenv(["list"], { env: { HOME: tree.path, AENV_SYSTEM_URL: `http://127.0.0.1:${port}` } });
    silent.close();
    silent.closeAllConnections();
    expect(code).toBe(69);
    expect(stderr).toContain("did not answer in time");
  });
});
