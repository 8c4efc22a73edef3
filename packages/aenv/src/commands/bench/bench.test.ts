import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { aenv, repo } from "../../testing/cli.ts";

let tree: Tree;
beforeEach(() => {
  tree = temporaryTree({ "notes.txt": "no archive", "empty/x": "" });
});
afterEach(() => tree[Symbol.dispose]());

const run = (...argv: string[]) => aenv(["bench", ...argv], { cwd: tree.path, env: { AENV_HOME: tree.path } });

describe("bench list", () => {
  it("lists the benchmarks with their projects and whether their data is prepared", async () => {
    const found = async () => JSON.parse((await run("list", "--json")).stdout).find(({ name }: { name: string }) => name === "tau2");
    const tau2 = { name: "tau2", version: "1.0.0", folder: join(repo, "environments/tau2") };
    expect(await found()).toMatchObject({ ...tau2, data: null });
    expect((await run("list")).stdout).toContain("aenv bench data tau2 --from");
    tree.write({ "data/tau2/hashes.json": {} });
    expect(await found()).toMatchObject({ ...tau2, data: join(tree.path, "data/tau2") });
  });

  it("does not list environments without data", async () => {
    expect((await run("list")).stdout).not.toContain("echo");
  });
});

describe("bench data", () => {
  let web: Server;
  let url: string;

  beforeAll(async () => {
    web = createServer((request, response) => {
      if (request.url === "/broken.tar.gz") response.writeHead(200, { "content-length": 1_000 }).write("half", () => response.destroy());
      else if (request.url === "/page.tar.gz") response.end("<html>Log in</html>");
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    web.closeAllConnections();
    web.close();
  });

  it.each([
    [["zoo", "--from", "empty"], 2, "there is no benchmark 'zoo'; the benchmarks are: swe-bench, tau2, terminal-bench", "aenv bench list"],
    [["../echo", "--from", "empty"], 2, "there is no benchmark '../echo'", "aenv bench list"],
    [["tau2"], 2, "required option '--from <dir-or-url>' not specified", "--help"],
    [["tau2", "--from", "nowhere"], 2, "/nowhere", "a checkout of the benchmark, the folder of its data, a .tar.gz archive"],
    [["tau2", "--from", "ftp://example.org/x.tar.gz"], 2, "'ftp:' is not supported", "http(s) address"],
    [["tau2", "--from", "http://"], 2, "'http://' is not a valid URL", "https://example.org"],
    [["tau2", "--from", "empty"], 1, "is neither a checkout of the benchmark", "Nothing was written"],
    [["tau2", "--from", "notes.txt"], 1, "notes.txt is not a .tar.gz archive", "Nothing was written"],
    [["tau2", "--from", "empty", "--to", "."], 1, "contains other files than prepared data", "Nothing was written"],
    [["tau2", "--from", "empty", "--domain", "zoo"], 1, "there is no domain zoo; the domains are mock", "Nothing was written"],
    [["tau2", "--from", "URL/gone.tar.gz"], 1, "/gone.tar.gz answered 404 Not Found", "Check the address"],
    [["tau2", "--from", "URL/page.tar.gz"], 1, "/page.tar.gz is not a .tar.gz archive", "Nothing was written"],
    [["tau2", "--from", "URL/broken.tar.gz"], 69, "/broken.tar.gz was interrupted", "Try again"],
    [["tau2", "--from", "http://127.0.0.1:1/x.tar.gz"], 69, "cannot be reached", "give its path instead"],
  ])("prints the problem and the next step: %j", async (argv, code, problem, hint) => {
    const ran = await run("data", ...argv.map((word) => word.replace("URL", url)));
    expect(ran.code).toBe(code);
    expect(ran.stderr).toContain(problem);
    expect(ran.stderr).toContain(hint);
    expect(existsSync(join(tree.path, "data"))).toBe(false);
  });

  it("prints the failure as JSON with --json", async () => {
    const { code, stdout } = await run("data", "tau2", "--from", "empty", "--json");
    expect([code, JSON.parse(stdout).error.message]).toEqual([1, expect.stringContaining("is neither a checkout of the benchmark")]);
  });
});

describe("a registry file with several datasets", { timeout: 120_000 }, () => {
  const from = ["terminal-bench", "--from", join(repo, "environments/terminal-bench/examples/harbor/registry.json")];

  it("is used with --domain, which names one of them", async () => {
    const unnamed = await run("images", ...from);
    expect([unnamed.code, unnamed.stderr]).toEqual([
      1,
      expect.stringMatching(/has 2 datasets; name one with --domain.*aenv-examples@0\.9/),
    ]);
    const images = JSON.parse((await run("images", ...from, "--domain", "aenv-examples@1.0", "--json")).stdout);
    expect(images.map(({ tasks }: { tasks: string[] }) => tasks)).toEqual([["hello-file"], ["workdir"]]);
  });
});
