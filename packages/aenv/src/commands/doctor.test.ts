import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { installCommand } from "../doctor/install.ts";
import { aenv } from "../testing/cli.ts";

/** A machine without container tools: the PATH is empty, and Docker's socket is not there. */
function bare(folder: string) {
  return {
    PATH: folder,
    AENV_DOCKER_SOCKET: join(folder, "docker.sock"),
    AENV_RUNSC: join(folder, "runsc"),
    AENV_HOME: join(folder, "home"),
  };
}

describe("doctor", { timeout: 120_000 }, () => {
  it("succeeds when the chosen engine works, lists what does not and how to get it, and leaves nothing", async () => {
    using tree = temporaryTree();
    const { code, stdout } = await aenv(["doctor"], { env: bare(tree.path) });
    expect(code).toBe(0);
    expect(stdout).toMatch(/✔ │ process/);
    expect(stdout).toMatch(/✗ │ docker\/runc /);
    expect(stdout).toMatch(/docker: .*docker\.sock.*\n {2}To get it: .*--docker-socket/);
    expect(stdout).toContain("image builder: no Docker engine, buildah or podman");
    expect(readdirSync(tree.path)).toEqual([]);
  });

  it("fails when the chosen engine does not work, and prints pure JSON with --json", async () => {
    using tree = temporaryTree();
    const { code, stdout } = await aenv(["doctor", "--engine", "docker", "--json"], { env: bare(tree.path) });
    expect(code).toBe(1);
    const answer = JSON.parse(stdout);
    expect(answer).toMatchObject({ engine: "docker/runc", works: false });
    expect(answer.engines.map(({ name }: { name: string }) => name)).toEqual([
      "process",
      "oci/runc",
      "oci/runsc",
      "docker/runc",
      "docker/runsc",
      "kubernetes",
    ]);
    expect(answer.engines[3].detail).toContain("does not work without: ");
  });

  it("says that a subnet for sandboxes is in use, and how to name another one", async () => {
    using tree = temporaryTree();
    const { stdout } = await aenv(["doctor", "--sandbox-subnet", "127.0.0.0/10", "--json"], { env: bare(tree.path) });
    const found = JSON.parse(stdout).parts.find(({ name }: { name: string }) => name === "subnet");
    if (process.getuid?.() !== 0) return expect(found.detail).toMatch(/^needs/);
    expect(found).toMatchObject({ ok: false, detail: expect.stringContaining("sandboxSubnet is 127.0.0.0/10, which overlaps a route") });
    expect(found.get).toContain("--sandbox-subnet");
    return undefined;
  });

  it("refuses an engine that does not exist", async () => {
    const { code, stderr } = await aenv(["doctor", "--engine", "chroot"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/engine.*"process".*"oci".*"docker"/s);
  });

  it("reports the version and the runtimes of an engine behind the socket", async () => {
    using tree = temporaryTree();
    const answers: Readonly<Record<string, object>> = {
      version: { Version: "28.1.0", ApiVersion: "1.44", Arch: "amd64" },
      info: { DefaultRuntime: "runc", Runtimes: { runc: {}, other: {} } },
    };
    const server = createServer((request, response) => response.end(JSON.stringify(answers[request.url?.split("/").at(-1) ?? ""])));
    server.listen(join(tree.path, "docker.sock"));
    await once(server, "listening");
    try {
      const { stdout } = await aenv(["doctor", "--json"], { env: bare(tree.path) });
      const found = (part: string) => JSON.parse(stdout).parts.find(({ name }: { name: string }) => name === part);
      expect(found("docker")).toMatchObject({ ok: true, detail: `Docker 28.1.0 at ${tree.path}/docker.sock, with runc` });
      expect(found("docker with runsc")).toMatchObject({ ok: false, detail: expect.stringContaining("no runtime 'runsc'") });
    } finally {
      server.close();
    }
  });
});

describe("the command that installs a tool", () => {
  it.each([
    ["ID=debian", "apt-get install redis-server"],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', "apt-get install redis-server"],
    ["ID=fedora", "dnf install redis"],
    ["ID=alpine", "apk add redis"],
    ["ID=arch", "pacman -S redis"],
    ['ID="opensuse-leap"\nID_LIKE="suse opensuse"', "zypper install redis"],
    ["", "install redis-server with the package manager of this system"],
  ])("for %s", (osRelease, command) => {
    expect(installCommand("redis", osRelease)).toBe(command);
  });
});
