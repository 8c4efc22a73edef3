import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { EgressPolicy } from "@aenv/contract";
import { startDocker, startPodman, temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { prefixOf } from "../network/subnet.ts";
import { describeEgress, type EgressMachine, type EgressWorld, LISTEN, OUTSIDE, PORT } from "../network/testing/egress-claims.ts";
import { DockerApi } from "./api.ts";
import { egressProblem } from "./checks.ts";
import { HOME_LABEL } from "./container.ts";
import { filterProblem, isBoundHere } from "./packet-filter.ts";

describe("whether packets of containers can be filtered", () => {
  it("depends on the network namespace of the daemon, whose socket is then listed there", async () => {
    using folder = temporaryTree();
    const socket = join(folder.path, "docker.sock");
    const server = createServer().listen(socket);
    await once(server, "listening");
    const table = () => readFileSync("/proc/self/net/unix", "utf8");
    expect(isBoundHere(socket, table())).toBe(true);
    const other = execFileSync("unshare", ["--user", "--net", "cat", "/proc/self/net/unix"], { encoding: "utf8" });
    expect(isBoundHere(socket, other)).toBe(false);
    server.close();
    await once(server, "close");
    writeFileSync(socket, "");
    expect(isBoundHere(socket, table())).toBe(false);
    rmSync(socket);
  });

  it("is no question before there is a daemon, if the server may filter at all", () => {
    expect(filterProblem("/nowhere/docker.sock")).toBe(process.getuid?.() === 0 ? null : "the server does not run as root");
  });

  it("decides about single destinations, and whether a container keeps its network", () => {
    const list: EgressPolicy = { allow: ["example.com"] };
    const sequences: EgressPolicy[][] = [
      ["open"],
      [list],
      ["none", "open"],
      ["open", "none", "open"],
      ["none", list],
      [list, "none", list],
    ];
    const problems = (kind: Partial<Parameters<typeof egressProblem>[1]>) =>
      sequences.map((policies) => egressProblem(policies, { runtime: "runc", isPodman: false, filterProblem: null, ...kind }));
    const later = {
      runsc: expect.stringContaining("gVisor reads its network"),
      podman: expect.stringContaining("Podman gives no network"),
    };
    const lists = expect.stringMatching(/cannot be root; run the server as root on the daemon's machine/);
    const why = "it cannot be root";
    expect(problems({})).toEqual([null, null, null, null, null, null]);
    expect(problems({ runtime: "runsc" })).toEqual([null, null, later.runsc, null, later.runsc, null]);
    expect(problems({ isPodman: true })).toEqual([null, null, later.podman, null, later.podman, null]);
    expect(problems({ filterProblem: why })).toEqual([null, lists, null, null, lists, lists]);
    expect(problems({ filterProblem: why, runtime: "runsc" })).toEqual([null, lists, later.runsc, later.runsc, lists, lists]);
    expect(problems({ filterProblem: why, isPodman: true })).toEqual([null, lists, later.podman, null, lists, lists]);
  });
});

describeEgress("the docker engine", { ...onDocker("docker"), more: describeDocker });

// Docker's own rules would keep sandboxes from each other.
describeEgress("the docker engine whose daemon has no firewall rules", {
  ...onDaemon((namespace) => startDocker({ namespace, iptables: false })),
  component: "docker",
});

describeEgress("the docker engine with gVisor", {
  ...onDocker("runsc"),
  runtime: "runsc",
  notLater: "gVisor reads its network at the start",
});

describeEgress("the docker engine with Podman", {
  ...onDaemon((namespace) => startPodman({ namespace })),
  component: "podman",
  notLater: "Podman gives no network",
});

function onDocker(component: "docker" | "runsc") {
  return { ...onDaemon((namespace) => startDocker({ namespace })), component };
}

function onDaemon(startDaemon: (namespace: string) => Promise<AsyncDisposable & { readonly socket: string }>) {
  const homeIdOf = (home: string) => readFileSync(join(home, "docker/home-id"), "utf8");
  return {
    prefix: (home: string) => prefixOf(homeIdOf(home)),
    withoutPolicy: ["ENETUNREACH", "EAI_AGAIN"] as const,
    start: async (namespace: string): Promise<EgressMachine> => {
      const daemon = await startDaemon(namespace);
      const api = new DockerApi(daemon.socket);
      return {
        socket: daemon.socket,
        remains: async (home) => {
          const filters = JSON.stringify({ label: [`${HOME_LABEL}=${homeIdOf(home)}`] });
          const [networks, containers] = [
            await api.list("/networks", { filters }),
            await api.list("/containers/json", { all: "true", filters }),
          ];
          return [...networks, ...containers].map(({ Id: id }) => String(id));
        },
        [Symbol.asyncDispose]: async () => {
          await api.close();
          await daemon[Symbol.asyncDispose]();
        },
      };
    },
  };
}

function describeDocker(world: EgressWorld): void {
  it("lead out beside a private network, whose names are known too", async () => {
    const { make, change, run, dial } = world;
    const networks = (...aliases: string[]) => ({ networks: [{ id: "shop", aliases }] });
    await using service = await make("none", networks("db"));
    await run(service, LISTEN);
    const policy: EgressPolicy = { allow: [`allowed.example:${PORT}`] };
    for (const first of ["none" as const, policy]) {
      await using sandbox = await make(first, networks());
      await change(sandbox, policy);
      expect(await dial(sandbox, "db:7000", `allowed.example:${PORT}`, `other.example:${PORT}`)).toEqual(["sandbox", OUTSIDE, "ENOTFOUND"]);
    }
  }, 60_000);

  it("are refused where they cannot be restricted: in another network namespace than the daemon's", async () => {
    using home = temporaryTree();
    const stranger = await world.startStranger();
    await stranger.call("open", home.path, world.socket);
    const list = { allow: ["9.9.9.9"] };
    await expect(stranger.call("create", "one", list)).rejects.toThrow(/is not in the server's network namespace; run the server as root/);
    await stranger.call("create", "two", "open");
    expect(await stranger.call("log")).toContainEqual(expect.stringContaining("cannot be filtered"));
    await expect(stranger.call("setEgress", "two", list)).rejects.toThrow("can allow single destinations only if");
    await stranger.call("setEgress", "two", "none");
    await stranger.call("destroy", "two");
    await stranger.call("close");
  }, 120_000);
}
