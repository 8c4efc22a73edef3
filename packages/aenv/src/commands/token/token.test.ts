import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { aenv } from "../../testing/cli.ts";
import { type CommandOptions, RunningCommand, run, runJson } from "../../testing/command.ts";

describe("a server that needs tokens", { timeout: 60_000 }, () => {
  let tree: Tree;
  let server: RunningCommand;
  let url: string;
  let admin: string;

  beforeAll(async () => {
    tree = temporaryTree();
    ({ server, url, admin } = await startServer(join(tree.path, "home")));
  });
  afterAll(async () => {
    await server?.stop("SIGTERM");
    tree?.[Symbol.dispose]();
  });

  const at = (token: string, options: CommandOptions = {}) => ({
    ...options,
    env: { HOME: "/nonexistent", AENV_SYSTEM_URL: url, AENV_API_KEY: token, ...options.env },
  });

  it("refuses requests without a token, and prints how to get one", async () => {
    const { code, stderr } = await aenv(["list"], at(""));
    expect([code, stderr]).toEqual([77, expect.stringContaining("aenv login")]);
  });

  it("creates a token that has exactly the permissions of its roles", async () => {
    const made = (await runJson(["token", "create", "--owner", "ada", "--role", "trainer", "--expires", "1d", "--json"], at(admin))) as {
      id: string;
      token: string;
    };
    expect(made).toMatchObject({ owner: "ada", roles: ["trainer"], token: expect.stringMatching(/^aenv_/) });
    expect(await runJson(["list", "--json"], at(made.token))).toEqual([]);
    const denied = await aenv(["token", "list"], at(made.token));
    expect([denied.code, denied.stderr]).toEqual([77, expect.stringContaining("requires the role admin")]);

    const listed = await aenv(["token", "list", "--owner", "ada", "--json"], at(admin));
    expect(JSON.parse(listed.stdout)).toMatchObject([{ id: made.id, owner: "ada", expiresAt: expect.any(String) }]);
    expect(listed.stdout).not.toContain(made.token);

    // The whole token is accepted instead of its id.
    expect((await aenv(["token", "revoke", made.token], at(admin))).stdout).toContain(`${made.id} is revoked`);
    expect((await aenv(["list"], at(made.token))).code).toBe(77);
    const again = await aenv(["token", "revoke", made.id], at(admin));
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("aenv token list")]);
  });

  it("tells a trainer who sees no environments what a publisher can do, and a publisher to push", async () => {
    const shown = async (role: string) => {
      const { token } = (await runJson(["token", "create", "--owner", "eve", "--role", role, "--json"], at(admin))) as { token: string };
      return (await aenv(["list"], at(token))).stdout;
    };
    const trainer = await shown("trainer");
    expect(trainer).toMatch(/may not publish; their publisher can show one to all: aenv env visibility NAME@VERSION public\n/);
    expect(trainer).toMatch(/published when a publisher first uses them: .*mini-terminal/);
    expect(trainer).not.toContain("aenv push");
    expect(await shown("publisher")).toMatch(/Publish one with: aenv push\n.*published when they are used: .*mini-terminal/);
  });

  it("lists the limit of instances of a token", async () => {
    await runJson(["token", "create", "--owner", "max", "--role", "trainer", "--max-instances", "7", "--json"], at(admin));
    const { stdout } = await aenv(["token", "list", "--owner", "max"], at(admin));
    expect(stdout).toMatch(/│ max instances │[\s\S]*│ max +│ trainer +│ 7 +│/);
  });

  it("refuses unknown roles, and a token without an owner", async () => {
    expect((await aenv(["token", "create", "--owner", "ada", "--role", "king"], at(admin))).stderr).toContain("admin, publisher");
    expect((await aenv(["token", "create"], at(admin))).code).toBe(2);
  });

  it("stores address and token after a login, in a file that only the user can read", async () => {
    using home = temporaryTree();
    const env = { HOME: home.path };
    const wrong = await run(["login", url, "--api-key", "aenv_wrong"], { env });
    expect(wrong.code).toBe(77);
    const { code, stdout } = await run(["login", url], { env, input: `${admin}\n` });
    expect([code, stdout]).toEqual([0, expect.stringContaining("as admin (admin)")]);
    const file = join(home.path, ".aenv/cli_config.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ system_url: url, hub_config: { api_key: admin } });
    expect((await aenv(["token", "list"], { env })).code).toBe(0);
  });
});

describe("a server whose administrator token is lost", { timeout: 60_000 }, () => {
  it("gets a new administrator token from a user with write access to its home, while it runs", async () => {
    using tree = temporaryTree();
    const home = join(tree.path, "home");
    const { server, url, admin } = await startServer(home);
    onTestFinished(async () => void (await server.stop("SIGTERM")));
    const at = (token: string) => ({ env: { HOME: "/nonexistent", AENV_SYSTEM_URL: url, AENV_API_KEY: token } });
    const made = (await runJson(["token", "reset-admin", "--home", home, "--json"], at(""))) as { id: string; token: string };
    expect(await runJson(["token", "list", "--json"], at(made.token))).toContainEqual(
      expect.objectContaining({ id: made.id, roles: ["admin"], note: "created by aenv token reset-admin" }),
    );
    expect((await aenv(["token", "list"], at(admin))).code).toBe(0);
    const { code, stdout } = await aenv(["token", "reset-admin", "--owner", "root", "--revoke-others", "--home", home], at(""));
    expect([code, stdout]).toEqual([0, expect.stringContaining("shown only once")]);
    const [token = ""] = /aenv_\w{12}_[\w-]{27}/.exec(stdout) ?? [];
    await vi.waitFor(async () => expect((await aenv(["token", "list"], at(admin))).code).not.toBe(0), { timeout: 10_000 });
    expect((await aenv(["token", "list"], at(made.token))).code).not.toBe(0);
    expect((await aenv(["token", "list"], at(token))).code).toBe(0);
    const nowhere = await aenv(["token", "reset-admin", "--home", join(tree.path, "nowhere")], at(""));
    expect([nowhere.code, nowhere.stderr]).toEqual([expect.any(Number), expect.stringContaining("does not exist; pass the server")]);
  });
});

async function startServer(home: string): Promise<{ server: RunningCommand; url: string; admin: string }> {
  const ports = ["--control-port", "0", "--data-port", "0", "--pool-min", "0", "--log-level", "silent"];
  const server = new RunningCommand(["server", "--json", "--access", "on", "--home", home, ...ports], { input: "open" });
  const { controlUrl: url, token: admin } = JSON.parse((await server.prints(/^\{"event":"ready".*\}$/m))[0]);
  return { server, url, admin };
}
