import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { messageOf } from "@aenv/contract";
import { containersOf, killContainers } from "@aenv/sandbox/test-containers";
import { describeNeeding } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { at, find, type Manifest, render } from "./chart.ts";
import { apply, type Installation, install, kubectl, kubectlAny } from "./installation.ts";
import { describeFailure, type Failure, isLoss, Load } from "./load.ts";
import { variants } from "./variants.ts";

const SERVERS = "app.kubernetes.io/component=server";
/** Where the init of a pod listens. */
const INIT_PORT = 61_080;
/** Connects to each address of its arguments, and prints for each whether that worked. */
const DIAL = `const dial = (to) => new Promise((resolve) => {
  const [host, port] = to.split(":");
  const socket = require("node:net").connect({ host, port: Number(port), timeout: 4000 });
  const end = (result) => () => (socket.destroy(), resolve(result));
  socket.on("connect", end("open")).on("timeout", end("closed")).on("error", end("closed"));
});
Promise.all(process.argv.slice(1).map(dial)).then((all) => console.log(all.join(" ")));`;

interface PodList {
  readonly items: readonly {
    readonly metadata: {
      readonly name: string;
      readonly uid: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly deletionTimestamp?: string;
    };
    readonly status: { readonly podIP: string; readonly conditions: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

const run = async (program: string, args: readonly string[]) => (await promisify(execFile)(program, args)).stdout;
const said = (text: string) => ({ content: [{ type: "text", text }], is_error: false });
const addressOf = (namespace: string, service: string) =>
  kubectl("--namespace", namespace, "get", "service", service, "--output", "jsonpath={.spec.clusterIP}");

describeNeeding("kubernetes", "a cluster", () => {
  describeNeeding("helm", "and the chart", () => {
    describe("before it is installed", () => {
      const namespace = `aenv-chart-${randomBytes(3).toString("hex")}`;
      const sandboxNamespace = `${namespace}-sandbox`;

      beforeAll(async () => {
        await kubectl("create", "namespace", namespace);
        await apply(stringify(find(await render({ sandboxNamespace }, namespace), "Namespace")));
      }, 60_000);
      afterAll(() => kubectl("delete", "namespace", namespace, sandboxNamespace, "--wait=false", "--ignore-not-found"), 60_000);

      it("accepts all its objects, with every field known", { timeout: 240_000 }, async () => {
        const all = await Promise.all(Object.values(variants).map((values) => render({ ...values, sandboxNamespace }, namespace)));
        // Most objects are the same in several variants. Generated secrets differ each time.
        const keyOf = (one: Manifest) => JSON.stringify(one.kind === "Secret" ? one.metadata : one);
        const objects = [...new Map(all.flat().map((one) => [keyOf(one), one])).values()];
        const printed = await apply(objects.map((one) => stringify(one)).join("---\n"), "--dry-run=server", "--validate=strict");
        expect(printed.trim().split("\n")).toHaveLength(objects.length);
      });

      it("accepts the pods of the server and of Redis where the restricted Pod Security Standard is enforced", {
        timeout: 60_000,
      }, async () => {
        const manifests = await render({ sandboxNamespace }, namespace);
        for (const kind of ["Deployment", "StatefulSet"]) {
          const { serviceAccountName: _, ...spec } = at<Record<string, unknown>>(find(manifests, kind), "spec.template.spec");
          const volumes = [...((spec.volumes ?? []) as object[]), ...(kind === "StatefulSet" ? [{ name: "data", emptyDir: {} }] : [])];
          const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "one", namespace: sandboxNamespace }, spec: { ...spec, volumes } };
          expect(await apply(stringify(pod), "--dry-run=server")).toContain("pod/one created");
        }
      });

      it.each([
        ["privileged containers", { containers: [{ name: "main", image: "x", securityContext: { privileged: true } }] }],
        ["folders of the node", { containers: [{ name: "main", image: "x" }], volumes: [{ name: "host", hostPath: { path: "/" } }] }],
        ["the network of the node", { containers: [{ name: "main", image: "x" }], hostNetwork: true }],
        ["root", { containers: [{ name: "main", image: "x" }] }],
      ])("refuses pods with %s among sandboxes", { timeout: 60_000 }, async (_, spec) => {
        const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "bad", namespace: sandboxNamespace }, spec };
        await expect(apply(stringify(pod), "--dry-run=server")).rejects.toThrow('violates PodSecurity "restricted:latest"');
      });
    });

    describeNeeding("mmdebstrap", "with images", () => {
      describeNeeding("redis", "installed", () => {
        const namespace = `aenv-chart-${randomBytes(3).toString("hex")}`;
        const sandboxNamespace = `${namespace}-sandbox`;
        // A short time for starts: pods of a killed server that were starting are removed sooner.
        const server = { resources: { requests: { cpu: "50m" } }, settings: { startTimeout: "45s" } };
        let installation: Installation;

        beforeAll(async () => {
          installation = await install(namespace, { sandboxNamespace, replicaCount: 2, server });
        }, 15 * 60_000);
        afterAll(() => kubectl("delete", "namespace", namespace, sandboxNamespace, "--wait=false", "--ignore-not-found"), 60_000);

        it("publishes an environment and calls its tools in a pod", { timeout: 120_000 }, async () => {
          await installation.push("environments/echo");
          await using echo = await installation.open("echo");
          expect(await echo.callTool("echo", { text: "hello" })).toMatchObject({ content: [{ text: "hello" }] });
        });

        describeNeeding("python", "and the original Python SDK, unchanged", () => {
          it("opens an environment in a pod and calls all its methods, and creates, lists and deletes instances", {
            timeout: 300_000,
          }, async () => {
            await installation.push("environments/echo");
            await installation.push("packages/aenv/src/platform-tests/fixtures/tally");
            const { methods, scheduler } = await installation.useFromPython("methods", "scheduler");
            expect(methods).toMatchObject({
              tools: ["echo@1.0.0/echo", "echo@1.0.0/remember"],
              text: said("hello"),
              error: { is_error: true },
              function: { echoes: ["hello", "ho ho"], notes: { color: "blue" } },
              reward: { reward: 1 },
              health: { success: true, data: { status: "healthy" } },
              info: { name: "echo@1.0.0", status: "Running" },
              at_once: Array.from({ length: 16 }, (_, n) => `${n}`),
              released: true,
            });
            expect(scheduler).toMatchObject({
              running: ["Running", true],
              listed: ["made", "other"],
              listed_by_name: ["made"],
              deleted: [true, true],
              after: "Terminated",
              listed_after: [],
            });
          });
        });

        it("keeps sandboxes away from Redis, the servers and the API, and others away from sandboxes", { timeout: 180_000 }, async () => {
          await installation.push("environments/mini-terminal");
          await using terminal = await installation.open("mini-terminal");
          const redis = await addressOf(namespace, "aenv-redis");
          const targets = [
            `${redis}:6379`,
            `${new URL(installation.systemUrl).hostname}:8080`,
            `${await addressOf("default", "kubernetes")}:443`,
          ];
          const script = [`-e`, DIAL, ...targets];
          // The servers reach all of them with the same script.
          expect(await kubectl("--namespace", namespace, "exec", "deployment/aenv", "--", "node", ...script)).toBe("open open open\n");
          const { stdout } = await terminal.sandbox.exec(["node", ...script]);
          expect(stdout).toBe("closed closed closed\n");
          const addresses = await kubectl("--namespace", sandboxNamespace, "get", "pods", "--output", "jsonpath={.items[*].status.podIP}");
          const pods = addresses.split(" ").map((address) => `${address}:${INIT_PORT}`);
          expect(await run(process.execPath, ["-e", DIAL, ...pods])).toBe(`${pods.map(() => "closed").join(" ")}\n`);
        });

        describe("under load", () => {
          /** One whose instances have a pod each, and one whose instances share pods. */
          let loads: readonly [Load, Load];
          const stop = () => Promise.all(loads.map((load) => load.stop()));
          const failures = () => loads.flatMap((load) => load.failures);
          const wrong = () => loads.flatMap((load) => load.wrong);
          const counts = () => loads.map((load) => ({ ...load.counts }));

          beforeEach(async () => {
            await serversReady();
            const open = async (name: string) => {
              await installation.push(`packages/aenv/src/platform-tests/fixtures/${name}`);
              return new Load(name, installation.client);
            };
            loads = [await open("probe"), await open("packed")];
            for (const load of loads) await load.start();
          }, 240_000);
          afterEach(async () => {
            await stop();
            await Promise.all(loads.map((load) => load.release()));
          }, 180_000);

          it("is upgraded without the loss of a call or an instance", { timeout: 600_000 }, async () => {
            for (const load of loads) load.countAnew();
            const begun = Date.now();
            // Another setting replaces both servers, one after the other.
            await installation.upgrade({ server: { ...server, settings: { ...server.settings, defaultTtl: "31m" } } });
            const during = counts();
            await stop();
            console.log("during the upgrade:", during);
            expect([failures().map((one) => describeFailure(one, begun)), wrong()]).toEqual([[], []]);
            for (const { calls, created } of during) {
              expect(calls).toBeGreaterThan(100);
              expect(created).toBeGreaterThan(1);
            }
            await expectTruth();
          });

          it("goes on when a server is killed: only requests in flight there are lost, and no instance", { timeout: 600_000 }, async () => {
            const victim = await busyServer();
            for (const load of loads) load.countAnew();
            const begun = Date.now();
            const processes = containersOf(victim.metadata.uid);
            const stillRun = () => processes.filter((pid) => existsSync(`/proc/${pid}`));
            if (!killContainers(victim.metadata.uid)) await kubectl(...inServers, "delete", "pod", victim.metadata.name, "--now");
            await expect.poll(stillRun, { timeout: 10_000, interval: 5 }).toEqual([]);
            const killed = Date.now();
            await expect
              .poll(async () => (await serverPods()).filter(({ isReady }) => isReady).length, { timeout: 60_000 })
              .toBeLessThan(2);
            await serversReady();
            for (const load of loads) await expect.poll(() => load.counts.created, { timeout: 120_000 }).toBeGreaterThan(1);
            const after = counts();
            await stop();
            const lost = failures();
            const inWords = lost.map((one) => describeFailure(one, begun));
            console.log("after the kill:", after, "lost:", inWords);
            expect(wrong()).toEqual([]);
            expect(inWords.filter((_, at) => !isLoss(lost[at] as Failure))).toEqual([]);
            expect(inWords.filter((_, at) => (lost[at] as Failure).begunAt > killed)).toEqual([]);
            for (const { calls } of after) expect(calls).toBeGreaterThan(100);
            await expectTruth();
          });

          /** A server that has answered calls of the load just now, so that some of them are lost when it is killed. */
          async function busyServer(): Promise<ServerPod> {
            const headers = { authorization: `Bearer ${installation.token}` };
            const callsOf = async ({ status }: ServerPod) => {
              const text = await (await fetch(`http://${status.podIP}:8080/metrics`, { headers })).text();
              const counts = text.matchAll(/^aenv_api_mcp_requests_total\{.*\} (\d+)$/gm);
              return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
            };
            const pods = await serverPods();
            const first = await Promise.all(pods.map(callsOf));
            return await vi.waitFor(
              async () => {
                const now = await Promise.all(pods.map(callsOf));
                const grown = now.map((count, at) => count - (first[at] ?? 0));
                const most = grown.indexOf(Math.max(...grown));
                expect(grown[most]).toBeGreaterThan(50);
                return pods[most] as ServerPod;
              },
              { timeout: 30_000 },
            );
          }

          /** The rows and the pods are those of the instances that clients have, and these have counted every answered call. */
          async function expectTruth(): Promise<void> {
            const [apart, packed] = loads;
            for (const load of loads) await expectRows(load);
            const ofApart = async () =>
              (await podsOf(`aenv.io/label-load=${apart.tag}`)).map(({ labels }) => labels["aenv.io/instance"]).sort();
            // A pod that the killed server had not finished is removed after the time of its start, and another minute or two.
            await expect.poll(ofApart, { timeout: 240_000, interval: 1_000 }).toEqual(apart.keptIds);
            const present = async () => (await packed.sharedProcesses()).flatMap(({ instances }) => instances).sort();
            await expect.poll(present, { timeout: 60_000, interval: 1_000 }).toEqual(packed.keptIds);
            const used = (await packed.sharedProcesses()).map(({ pod }) => pod).sort();
            // Without those that wait for an instance, which have no owner yet. One that is empty is removed after a minute.
            const ofPacked = async () =>
              (await podsOf("business/aenv-name=packed"))
                .filter(({ name, labels }) => used.includes(name) || labels["business/aenv-owner"] !== undefined)
                .map(({ name }) => name)
                .sort();
            await expect.poll(ofPacked, { timeout: 240_000, interval: 1_000 }).toEqual(used);
          }

          async function expectRows(load: Load): Promise<void> {
            await load.checkKept();
            expect(load.wrong).toEqual([]);
            const kept = load.keptIds;
            // Clients whose creation was broken off do not know of its instance.
            const live = async () => (await installation.liveInstances("load", load.tag)).sort();
            const unknown = (await live()).filter((id) => !kept.includes(id));
            expect(unknown.length).toBeLessThanOrEqual(load.failures.filter(({ what }) => what === "create").length);
            for (const id of unknown) await installation.delete(id);
            await expect.poll(live, { timeout: 60_000, interval: 500 }).toEqual(kept);
          }

          async function podsOf(selector: string): Promise<PodList["items"][number]["metadata"][]> {
            const args = ["--namespace", sandboxNamespace, "get", "pods", "--selector", selector, "--output", "json"];
            return (JSON.parse(await kubectl(...args)) as PodList).items.map(({ metadata }) => metadata);
          }
        });

        const inServers = ["--namespace", namespace];

        interface ServerPod {
          readonly metadata: { readonly name: string; readonly uid: string };
          readonly status: { readonly podIP: string };
          readonly isReady: boolean;
        }

        /** Without those that are being replaced. */
        async function serverPods(): Promise<ServerPod[]> {
          const { items } = JSON.parse(await kubectl(...inServers, "get", "pods", "--selector", SERVERS, "--output", "json")) as PodList;
          return items
            .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
            .map((pod) => ({ ...pod, isReady: pod.status.conditions.some(({ type, status }) => type === "Ready" && status === "True") }));
        }

        async function serversReady(): Promise<void> {
          const ready = async () => (await serverPods()).map(({ isReady }) => isReady);
          await expect.poll(ready, { timeout: 120_000, interval: 500 }).toEqual([true, true]);
        }

        it("keeps instances when Redis is restarted, and recovers by itself", { timeout: 300_000 }, async () => {
          await using echo = await installation.open("echo");
          await kubectl("--namespace", namespace, "delete", "pod", "aenv-redis-0", "--grace-period=1", "--wait=true");
          const answers = () => echo.callTool("echo", { text: "still here" }).then(({ isError }) => !isError, messageOf);
          await expect.poll(answers, { timeout: 120_000, interval: 500 }).toBe(true);
          const opens = async () => {
            await using another = await installation.open("echo");
            return (await another.callTool("echo", { text: "new" })).isError;
          };
          await expect.poll(() => opens().catch(messageOf), { timeout: 120_000, interval: 500 }).toBe(false);
          expect(await answers()).toBe(true);
        });

        it("lets its server do all that it must in the namespace of sandboxes, and nothing else", { timeout: 60_000 }, async () => {
          const account = `system:serviceaccount:${namespace}:aenv`;
          const can = async (what: string, where = sandboxNamespace) =>
            (await kubectlAny("auth", "can-i", ...what.split(" "), "--namespace", where, "--as", account)).stdout.trim();
          const allowed = ["create pods", "delete pods", "watch pods", "get pods --subresource=log"];
          expect(await Promise.all(allowed.map((what) => can(what)))).toEqual(allowed.map(() => "yes"));
          const refused = ["get secrets", "create pods --subresource=exec", "create rolebindings", "update networkpolicies"];
          expect(await Promise.all([...refused.map((what) => can(what)), can("list pods", namespace)])).toEqual([
            ...refused.map(() => "no"),
            "no",
          ]);
        });

        it("leaves nothing when it is uninstalled", { timeout: 240_000 }, async () => {
          await installation.uninstall();
          const remaining = async () => {
            const kinds =
              "pods,deployments,statefulsets,services,secrets,configmaps,persistentvolumeclaims,roles,rolebindings,networkpolicies";
            const own = await kubectl("--namespace", namespace, "get", kinds, "--output", "name");
            const others = await kubectl("get", "namespaces,persistentvolumes,clusterroles,clusterrolebindings", "--output", "name");
            const isOurs = (name: string) =>
              name.includes(sandboxNamespace) || /^(pod|service\/aenv|secret|persistentvolumeclaim|configmap\/aenv)/.test(name);
            return [...own.trim().split("\n"), ...others.trim().split("\n")].filter(isOurs);
          };
          await expect.poll(remaining, { timeout: 180_000, interval: 1_000 }).toEqual([]);
        });
      });
    });
  });
});
