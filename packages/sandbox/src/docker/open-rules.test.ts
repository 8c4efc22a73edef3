import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DockerDaemon, describeNeeding, startDocker, startPodman, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Machines } from "../network/testing/machines.ts";
import { openRules } from "./open-rules.ts";

const program = fileURLToPath(new URL("testing/dial-from-sandbox.ts", import.meta.url));
const neighbour = fileURLToPath(new URL("testing/dial-neighbour.ts", import.meta.url));
const PORT = 8443;

it("the rules let names be asked of the machine's name servers, and are complete without any", () => {
  expect(openRules("aeo1", ["10.0.0.2"])).toContain("ip daddr { 10.0.0.2 } meta l4proto { tcp, udp } th dport 53 accept");
  expect(openRules("aeo1", [])).not.toContain("dport 53");
});

describeNeeding("docker", "a hostile program in a sandbox of the docker engine with open egress", () => {
  describeNeeding("network-namespaces", "on a machine with neighbours", () => {
    let machines: Machines;
    let docker: DockerDaemon;
    let port: number;

    beforeAll(async () => {
      machines = new Machines();
      const [server, outside] = [machines.start(machines.machine), machines.start(machines.outside)];
      await outside.call("listen", "0.0.0.0", PORT, "outside");
      port = await server.call<number>("listen", "0.0.0.0", 0, "machine");
      docker = await startDocker({ namespace: machines.machine });
    }, 120_000);
    afterAll(async () => {
      await docker?.[Symbol.asyncDispose]();
      await machines?.remove();
    }, 60_000);

    async function dial(rules: "with" | "without", targets: readonly string[]) {
      using home = temporaryTree();
      const enter = [`--net=/run/netns/${machines.machine}`, process.execPath, program];
      const { stdout } = await promisify(execFile)("nsenter", [...enter, home.path, docker.socket, rules, ...targets]);
      return JSON.parse(stdout) as { seen: string[]; lines: string[]; hasRules: boolean };
    }

    it("reaches public addresses, and neither metadata services, private networks nor the machine", { timeout: 120_000 }, async () => {
      const forbidden = [
        `169.254.169.254:${PORT}`,
        `100.100.100.200:${PORT}`,
        `10.1.0.5:${PORT}`,
        `${Machines.own}:${port}`,
        `GATEWAY:${port}`,
      ];
      const all = [`9.9.9.9:${PORT}`, ...forbidden];
      expect(await dial("with", all)).toEqual({
        seen: ["got outside", ...forbidden.map(() => "refused")],
        lines: [],
        hasRules: false,
      });
      // Without the rules, all of them answer.
      expect((await dial("without", all)).seen).toEqual(
        ["outside", "outside", "outside", "outside", "machine", "machine"].map((who) => `got ${who}`),
      );
    });
  });
});

for (const [name, start] of [
  // Docker's own rules would keep them from each other.
  ["docker", (namespace: string) => startDocker({ namespace, iptables: false })],
  ["podman", (namespace: string) => startPodman({ namespace })],
] as const)
  describeNeeding(name, `two sandboxes of ${name} with open egress`, () => {
    describeNeeding("network-namespaces", "on one bridge", () => {
      it("do not reach each other by any address, also if one got its network while it ran", { timeout: 180_000 }, async () => {
        const machines = new Machines();
        try {
          await using daemon = await start(machines.machine);
          const dial = async (rules: "with" | "without") => {
            using home = temporaryTree();
            const enter = [`--net=/run/netns/${machines.machine}`, process.execPath, neighbour];
            const { stdout } = await promisify(execFile)("nsenter", [...enter, home.path, daemon.socket, rules]);
            return JSON.parse(stdout) as { seen: Record<string, string[]>; hasRules: boolean };
          };
          const { seen, hasRules } = await dial("with");
          expect(Object.values(seen).flat()).toEqual(Object.values(seen).flatMap((all) => all.map(() => "no answer")));
          // All three ended at once.
          expect(hasRules).toBe(false);
          expect(await dial("without")).toEqual({
            seen: { created: reached(seen.created), changed: reached(seen.changed) },
            hasRules: false,
          });
        } finally {
          await machines.remove();
        }
      });
    });
  });

/** Every address answers, at least one. */
function reached(addresses: readonly string[] = []): string[] {
  expect(addresses).not.toEqual([]);
  return addresses.map(() => "here");
}
