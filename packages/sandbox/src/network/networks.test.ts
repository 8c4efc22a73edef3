import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Refusal } from "./refusals.ts";
import { type Actor, dial, inSandbox, Machines, type TakenNetwork } from "./testing/machines.ts";

const REFUSED = "Connection refused";
const UNKNOWN = "Name or service not known";
const PORT = 8443;

describeNeeding("network-namespaces", "the networks of sandboxes", () => {
  let machines: Machines;
  let server: Actor;
  let outside: Actor;
  let machinePort: number;
  let one: TakenNetwork;
  let other: TakenNetwork;

  beforeAll(async () => {
    machines = new Machines();
    server = machines.start(machines.machine);
    outside = machines.start(machines.outside);
    for (const port of [PORT, 8080, 53]) await outside.call("listen", "0.0.0.0", port, "outside");
    machinePort = await server.call("listen", "0.0.0.0", 0, "machine");
    await server.call("name", "allowed.example", "9.9.9.9");
    await server.call("name", "other.example", "9.9.9.10");
    await server.call("name", "a.wild.example", "9.9.9.10");
    await server.call("name", "rebound.example", "10.1.0.5");
    await server.call("name", "machine.example", Machines.own);
    await server.call("name", "metadata.example", "169.254.169.254");
    await server.call("open", machines.home, 2);
    one = await server.take();
    other = await server.take();
  });
  afterAll(() => machines?.remove());

  it("have different addresses, and names that begin alike and fit an interface", () => {
    expect(new Set([one.address, one.hostAddress, other.address, other.hostAddress]).size).toBe(4);
    for (const { name } of [one, other]) expect(name).toMatch(/^ae[0-9a-f]{8}_[0-9a-z]{1,4}$/);
  });

  it("let the server connect to the sandbox, and the sandbox answer, under every policy", async () => {
    const inside = machines.start(one.name);
    await inside.call("listen", "0.0.0.0", 7000, "sandbox");
    for (const policy of ["none", "open"] as const) {
      await server.setEgress(one, policy);
      expect(await dial({ ...one, namespacePath: `/run/netns/${machines.machine}` }, one.address, 7000)).toBe(`sandbox ${one.hostAddress}`);
    }
    await inside.kill();
  });

  it("have no way out without a policy: connections and names fail at once", async () => {
    await server.setEgress(one, "none");
    expect(await dial(one, "9.9.9.9", PORT)).toBe(REFUSED);
    expect(await dial(one, "allowed.example", PORT)).toBe(UNKNOWN);
  });

  it("connect to listed names and ports only, through addresses that the platform resolved", async () => {
    await server.setEgress(one, { allow: [`allowed.example:${PORT}`, "*.wild.example"] });
    expect(await dial(one, "9.9.9.9", PORT)).toBe(REFUSED);
    expect(await dial(one, "allowed.example", PORT)).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "allowed.example", 8080)).toBe(REFUSED);
    expect(await dial(one, "other.example", PORT)).toBe(UNKNOWN);
    expect(await dial(one, "9.9.9.10", PORT)).toBe(REFUSED);
    expect(await dial(one, "a.wild.example", 8080)).toBe(`outside ${Machines.own}`);
    expect(await dial(other, "9.9.9.9", PORT)).toBe(REFUSED);
  });

  it("connect to listed networks, and to nothing private that a listed name points to", async () => {
    await server.setEgress(one, { allow: ["rebound.example", "machine.example", "metadata.example"] });
    for (const name of ["rebound.example", "machine.example", "metadata.example"]) expect(await dial(one, name, PORT)).toBe(UNKNOWN);
    expect(await dial(one, "10.1.0.5", PORT)).toBe(REFUSED);
    await server.setEgress(one, { allow: ["rebound.example", `10.1.0.0/16:${PORT}`] });
    expect(await dial(one, "10.1.0.5", PORT)).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "rebound.example", PORT)).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "rebound.example", 8080)).toBe(REFUSED);
  });

  it.each(["open", "0.0.0.0/0"])("never reach the machine, metadata services and other sandboxes: %s", async (policy) => {
    await server.setEgress(one, policy === "open" ? policy : { allow: [policy] });
    await server.setEgress(other, "open");
    const neighbour = machines.start(other.name);
    await neighbour.call("listen", "0.0.0.0", 7001, "sandbox");
    expect(await dial(one, "9.9.9.10", PORT)).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "other.example", 8080)).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "10.1.0.5", PORT)).toBe(policy === "open" ? REFUSED : `outside ${Machines.own}`);
    const forbidden: [string, number][] = [
      [Machines.own, machinePort],
      [one.hostAddress, machinePort],
      [other.hostAddress, machinePort],
      [other.address, 7001],
      ["169.254.169.254", PORT],
      ["100.100.100.200", PORT],
    ];
    for (const [host, port] of forbidden) expect({ host, seen: await dial(one, host, port) }).toEqual({ host, seen: REFUSED });
    await neighbour.kill();
  });

  it("cannot be reached from other machines", async () => {
    await server.setEgress(one, "open");
    const inside = machines.start(one.name);
    await inside.call("listen", "0.0.0.0", 7002, "sandbox");
    const fromOutside = { ...one, namespacePath: `/run/netns/${machines.outside}` };
    expect(await inSandbox(fromOutside, `ip route replace ${one.address} via ${Machines.own}`)).toBe("");
    expect(await inSandbox(fromOutside, `timeout 1 bash -c 'exec 3<>/dev/tcp/${one.address}/7002' || echo closed`)).toBe("closed");
    await inside.kill();
  });

  it("cut the connections that a new policy does not allow, and keep the others", async () => {
    await server.setEgress(one, { allow: ["9.9.9.9", "9.9.9.10"] });
    const talk = `
      exec 3<>/dev/tcp/9.9.9.9/${PORT} 4<>/dev/tcp/9.9.9.10/${PORT}; read -u 3 line; read -u 4 line
      touch "$HOME/ready"; while [ ! -e "$HOME/go" ]; do read -t 0.01 -u 4 _; done
      echo kept >&3; read -u 3 kept; echo cut >&4; read -u 4 cut; echo "$kept,$cut"`;
    using folder = temporaryTree({});
    const said = inSandbox(one, `HOME=${folder.path}; ${talk}`);
    await expect.poll(() => existsSync(join(folder.path, "ready")), { timeout: 20_000 }).toBe(true);
    await server.setEgress(one, { allow: ["9.9.9.9"] });
    writeFileSync(join(folder.path, "go"), "");
    expect(await said).toBe("kept,");
  });

  it("drop packets with the address of another, and all of IPv6", async () => {
    await server.setEgress(one, "open");
    const script = `ip addr add ${other.address}/32 dev eth0; ip route add 9.9.9.9 via ${one.hostAddress} src ${other.address}
      timeout 1 bash -c 'exec 3<>/dev/tcp/9.9.9.9/${PORT}' || echo closed
      ip -6 addr show dev eth0 | grep -c inet6; ip addr del ${other.address}/32 dev eth0`;
    expect((await inSandbox(one, script)).split("\n")).toEqual(["closed", "0"]);
  });

  it("report refused connections once, with the network, host and port", async () => {
    await server.setEgress(one, "none");
    for (let step = 0; step < 3; step++) await dial(one, "9.9.9.9", 4321);
    await dial(one, "never.example", 80);
    const refused = await server.call<Refusal[]>("refused");
    expect(refused.filter(({ port }) => port === 4321)).toEqual([{ network: one.name, host: "9.9.9.9", port: 4321 }]);
    expect(refused.filter(({ host }) => host === "never.example")).toEqual([{ network: one.name, host: "never.example", port: null }]);
  });

  it("outlive their server, which the next one adopts, with policies and names; pools of the dead one are removed", async () => {
    await server.setEgress(one, { allow: [`allowed.example:${PORT}`] });
    await server.kill();
    expect(await dial(one, "9.9.9.9", 8080)).toBe(REFUSED);
    server = machines.start(machines.machine);
    await server.call("name", "allowed.example", "9.9.9.9");
    await server.call("open", machines.home, 0);
    expect([...(await server.call<string[]>("list"))].sort()).toEqual([one.name, other.name].sort());
    expect(machines.remains().filter((line) => /^ae/.test(line))).toHaveLength(2);
    expect(await server.call("find", one.name)).toEqual(one);
    await expect.poll(() => dial(one, "allowed.example", PORT), { timeout: 20_000 }).toBe(`outside ${Machines.own}`);
    expect(await dial(one, "9.9.9.9", 8080)).toBe(REFUSED);
  });

  it("have the policy that their last server has set, also if the next one adopted them before", async () => {
    const next = machines.start(machines.machine);
    await next.call("name", "other.example", "9.9.9.10");
    await next.call("open", machines.home, 0);
    expect(await next.call("find", one.name)).toEqual(one);
    await server.setEgress(one, { allow: [`other.example:${PORT}`] });
    await server.kill();
    server = next;
    await expect.poll(() => dial(one, "other.example", PORT), { timeout: 20_000 }).toBe(`outside ${Machines.own}`);
  });

  it("leave nothing behind when they are released and the last server closes", async () => {
    await server.call("release", one.name);
    await server.call("remove", other.name);
    await server.call("remove", other.name);
    expect(await server.call("find", one.name)).toBeNull();
    await server.call("close");
    expect(machines.remains()).toEqual([]);
    await server.call("remove", other.name);
    expect(machines.remains()).toEqual([]);
  });
});

describeNeeding("network-namespaces", "the networks of sandboxes on a machine whose VPN has a route to 10.0.0.0/8", () => {
  let machines: Machines;
  let server: Actor;

  beforeAll(() => {
    machines = new Machines("route add 10.0.0.0/8 via 203.0.113.2");
    server = machines.start(machines.machine);
  });
  afterAll(() => machines?.remove());

  it("are refused with the setting that names a free subnet, which doctor finds too", async () => {
    await expect(server.call("open", machines.home, 0)).rejects.toThrow(
      /routes of this machine use all of 10\.64\.0\.0\/10.*sandboxSubnet/,
    );
    await expect(server.call("open", machines.home, 0, "10.1.0.0/16")).rejects.toThrow(
      "sandboxSubnet is 10.1.0.0/16, which overlaps a route",
    );
    await expect(server.call("open", machines.home, 0, "172.30.0.0/9")).rejects.toThrow("from /10 to /29");
    expect(await server.call("probe", machines.home)).toMatchObject({ ok: false, reason: expect.stringContaining("sandboxSubnet") });
    expect(await server.call("probe", machines.home, "172.30.0.0/16")).toEqual({ ok: true, detail: "172.30.0.0/16 is free" });
    expect(machines.remains()).toEqual([]);
  });

  it("have addresses of the subnet that the setting names, and leave nothing behind", async () => {
    await server.call("open", machines.home, 0, "172.30.0.0/16");
    const network = await server.take();
    expect(network.address).toMatch(/^172\.30\./);
    await server.setEgress(network, "open");
    const outside = machines.start(machines.outside);
    await outside.call("listen", "0.0.0.0", PORT, "outside");
    expect(await dial(network, "9.9.9.9", PORT)).toBe(`outside ${Machines.own}`);
    // Its own routes do not count.
    expect(await server.call("probe", machines.home, "172.30.0.0/16")).toMatchObject({ ok: true });
    await server.call("release", network.name);
    await server.call("close");
    expect(machines.remains()).toEqual([]);
  });
});
