import { createServer } from "node:net";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Actor, inSandbox, Machines, type TakenNetwork } from "./testing/machines.ts";
import { runScript } from "./testing/run-script.ts";

const PORT = 8443;

for (const runtime of ["runc", "runsc"] as const)
  describeNeeding(runtime, `a hostile program in a sandbox with ${runtime}`, () => {
    let machines: Machines;
    let server: Actor;
    let own: TakenNetwork;
    let neighbour: TakenNetwork;
    let machinePort: number;

    beforeAll(async () => {
      machines = new Machines();
      server = machines.start(machines.machine);
      const outside = machines.start(machines.outside);
      await outside.call("listen", "0.0.0.0", PORT, "outside");
      machinePort = await server.call("listen", "0.0.0.0", 0, "machine");
      await server.call("name", "allowed.example", "9.9.9.9");
      await server.call("open", machines.home, 2);
      own = await server.take();
      neighbour = await server.take();
      const program = machines.start(neighbour.name);
      await program.call("listen", "0.0.0.0", 7000, "neighbour");
    });
    afterAll(() => machines?.remove());

    /** Each line is what one attempt led to: `got ...` if it worked. */
    const dial = (host: string, port: number) =>
      `timeout 10 bash -c 'exec 3<>/dev/tcp/${host}/${port} && read -u 3 line && echo "got $line"' 2>/dev/null || echo refused`;
    const socket = (domain: string, type: string, protocol: string) =>
      `perl -MSocket -e 'print socket(S, ${domain}, ${type}, ${protocol}) ? "got a socket\\n" : "refused\\n"'`;

    it("reaches what the policy allows, by name, and nothing else", async () => {
      await server.setEgress(own, { allow: [`allowed.example:${PORT}`] });
      const attempts = {
        allowed: dial("allowed.example", PORT),
        "an address that is not allowed": dial("9.9.9.10", PORT),
        "a name that is not allowed": dial("other.example", PORT),
      };
      expect(await report(attempts)).toEqual({
        allowed: `got outside ${Machines.own}`,
        "an address that is not allowed": "refused",
        "a name that is not allowed": "refused",
      });
    });

    it("gets no raw sockets, and cannot change its address, its routes or its firewall", async () => {
      const attempts = {
        "a raw socket": socket("PF_INET", "SOCK_RAW", "1"),
        "a packet socket": socket("17", "SOCK_RAW", "768"),
        "another address": "ip addr add 10.9.9.9/32 dev eth0 2>/dev/null && echo got it || echo refused",
        "another route": "ip route add 10.9.9.0/24 dev eth0 2>/dev/null && echo got it || echo refused",
        "another firewall": "nft add table inet mine 2>/dev/null && echo got it || echo refused",
      };
      own = await server.take();
      expect(await report(attempts)).toEqual(Object.fromEntries(Object.keys(attempts).map((name) => [name, "refused"])));
      // The same attempts work in the network of the sandbox without its other walls.
      const free = await server.take();
      expect(await inSandbox(free, Object.values(attempts).join("\n"))).toMatch(/^(got.*\n?){5}$/);
    });

    it("reaches no port of the machine, no neighbour and no metadata service, even with every address allowed", async () => {
      own = await server.take();
      await server.setEgress(own, { allow: ["0.0.0.0/0"] });
      const attempts = {
        "the machine": dial(Machines.own, machinePort),
        "the machine's end of the cable": dial(own.hostAddress, machinePort),
        "the machine's loopback": dial("127.0.0.1", machinePort),
        "a neighbour": dial(neighbour.address, 7000),
        "the metadata service": dial("169.254.169.254", PORT),
        "a metadata service that is not link-local": dial("100.100.100.200", PORT),
      };
      const all = { ...attempts, "the world": dial("9.9.9.9", PORT) };
      expect(await report(all)).toEqual({
        ...Object.fromEntries(Object.keys(attempts).map((name) => [name, "refused"])),
        "the world": `got outside ${Machines.own}`,
      });
      // From the machine, all of them answer.
      const machine = { ...own, namespacePath: `/run/netns/${machines.machine}` };
      for (const [name, attempt] of Object.entries(attempts))
        expect({ name, seen: await inSandbox(machine, attempt) }).toEqual({ name, seen: expect.stringMatching(/^got/) });
    });

    it("sees no socket of the machine, neither Docker's nor one without a file", async () => {
      own = await server.take();
      const abstract = `\0aenv-test-${process.pid}`;
      const listener = createServer((connection) => connection.end("machine"));
      await new Promise<void>((resolve) => listener.listen(abstract, resolve));
      try {
        const connect = `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, pack_sockaddr_un("\\0aenv-test-${process.pid}")) ? "got it\\n" : "refused\\n"'`;
        const attempts = {
          "an abstract socket": connect,
          "Docker's socket": "ls /run/docker.sock /var/run/docker.sock 2>/dev/null || echo refused",
        };
        expect(await report(attempts)).toEqual({ "an abstract socket": "refused", "Docker's socket": "refused" });
      } finally {
        listener.close();
      }
    });

    /** Runs the attempts in one sandbox. Each prints one line. */
    async function report<Name extends string>(attempts: Readonly<Record<Name, string>>): Promise<Record<string, string | undefined>> {
      const names = Object.keys(attempts) as Name[];
      const lines = await runScript(runtime, own, names.map((name) => attempts[name]).join("\n"));
      return Object.fromEntries(names.map((name, index) => [name, lines[index]]));
    }
  });
