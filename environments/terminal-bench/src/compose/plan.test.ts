// biome-ignore-all lint/suspicious/noTemplateCurlyInString: compose files have this form.
import { describe, expect, it } from "vitest";
import { parseCompose } from "./compose.ts";
import { interpolate } from "./interpolate.ts";
import { planCompose } from "./plan.ts";
import { durationOf, mebibytesOf, wordsOf } from "./values.ts";

const plan = (text: string, variables = {}) => planCompose(parseCompose(text), "main", variables);

describe("variables in compose files", () => {
  it("are replaced as compose does", () => {
    const cases: readonly (readonly [string, string])[] = [
      ["$A-${A}", "1-1"],
      ["${B:-x}${B-x}${A:-x}", "x1"],
      ["${C:-$A}${C-${A}}", "11"],
      ["${A:+y}${B:+y}${B+y}${C+y}", "yy"],
      ["$$A $${A}", "$A ${A}"],
      ["${C}", ""],
    ];
    for (const [text, expected] of cases) expect(interpolate(text, { A: "1", B: "" }), text).toBe(expected);
    expect(interpolate({ a: ["$A"], b: 1 }, { A: "1" })).toEqual({ a: ["1"], b: 1 });
    expect(() => interpolate({ a: "${C:?no C}" }, {})).toThrow("a: the variable C is not set: no C");
  });
});

describe("values of compose files", () => {
  it("are durations, amounts and commands", () => {
    expect(["30s", "1m30s", "500ms"].map((text) => durationOf(text, "a"))).toEqual([30, 90, 0.5]);
    expect(["512m", "1.5GB", "1048576", "1k"].map((text) => mebibytesOf(text, "a"))).toEqual([512, 1536, 1, 1]);
    expect(wordsOf(`sh -c "echo \\"a b\\" 'c'" 'd e' f\\ g ""`)).toEqual(["sh", "-c", `echo "a b" 'c'`, "d e", "f g", ""]);
    expect(() => durationOf("30", "at")).toThrow("at: '30' is not a duration");
  });
});

describe("the plan of a compose file", () => {
  it("has the services in the order of their dependencies, and the agent's also if the file leaves it out", () => {
    const { order, main, problems } = plan(
      "services:\n  web: {image: w, depends_on: [db]}\n  db: {image: d, hostname: store, command: run --all, mem_limit: 1g, cpus: 2}\n",
    );
    expect([order.map(({ name }) => name), problems]).toEqual([["main", "db", "web"], []]);
    expect(main).toMatchObject({ name: "main", image: null, command: null });
    expect(order[1]).toMatchObject({ aliases: ["db", "store"], command: ["run", "--all"], memoryMb: 1024, cpus: 2 });
  });

  it("has healthchecks for which services wait", () => {
    const { order, problems } = plan(
      "services:\n  main: {depends_on: {db: {condition: service_healthy}}}\n  db: {image: d, healthcheck: {test: ok $X, interval: 2s}}\n",
      { X: "1" },
    );
    expect([order.map(({ name }) => name), problems]).toEqual([["db", "main"], []]);
    expect(order[0]?.healthcheck).toMatchObject({ test: ["/bin/sh", "-c", "ok 1"], intervalSec: 2, timeoutSec: 30, retries: 3 });
  });

  it("has the networks and volumes that services share", () => {
    const { order, isInternal, isShared, problems } = plan(
      `services:
  main: {networks: [front], volumes: ['data:/srv/data/', 'own:/own', '/scratch']}
  web: {image: w, networks: {front: {aliases: [www]}, back: null}, volumes: [{type: volume, source: data, target: $ROOT/www, read_only: true}]}
  db: {image: d, networks: [back], volumes: ['data:/d:ro']}
networks: {front: {}, back: {internal: true}}
volumes: {data: , own: {driver: local}}
`,
      { ROOT: "/var" },
    );
    expect(problems).toEqual([]);
    expect(order.map(({ networks }) => networks)).toEqual([
      [{ name: "front", aliases: ["main"] }],
      [
        { name: "front", aliases: ["web", "www"] },
        { name: "back", aliases: ["web"] },
      ],
      [{ name: "back", aliases: ["db"] }],
    ]);
    expect(order.map((service) => isInternal(service))).toEqual([false, false, true]);
    expect(order.flatMap(({ volumes }) => volumes)).toEqual([
      { name: "data", source: null, path: "/srv/data", isReadOnly: false },
      { name: "own", source: null, path: "/own", isReadOnly: false },
      { name: null, source: null, path: "/scratch", isReadOnly: false },
      { name: "data", source: null, path: "/var/www", isReadOnly: true },
      { name: "data", source: null, path: "/d", isReadOnly: true },
    ]);
    expect(order[0]?.volumes.map((volume) => isShared(volume))).toEqual([true, false, false]);
  });

  it("refuses a shared volume of the agent where the programs, files or results of the tests are", () => {
    const problems = (path: string) =>
      plan(`services:\n  main: {volumes: ['d:${path}']}\n  a: {image: x, volumes: ['d:/d']}\nvolumes: {d: {}}\n`).problems;
    for (const path of [
      "/usr/bin",
      "/usr",
      "/tests",
      "/logs",
      "/logs/verifier/x",
      "/root",
      "/root/.cache",
      "/etc",
      "/proc",
      "/opt/lib/python3.11",
    ])
      expect(problems(path), path).toEqual([expect.stringContaining(`services.main.volumes: a shared volume at ${path}`)]);
    for (const path of ["/app", "/data", "/logs/agent", "/var/www", "/srv"]) expect(problems(path), path).toEqual([]);
    expect(plan("services:\n  main: {volumes: ['d:/usr/bin']}\n").problems).toEqual([]);
  });

  it("refuses by name what sandboxes do not have", () => {
    const problems = (service: string, more = "") => plan(`services:\n  main: {}\n  a: ${service}\n${more}`).problems;
    const cases: readonly (readonly [string, string])[] = [
      ["{image: x, network_mode: none}", "services.a.network_mode is not supported"],
      ["{image: x, tty: true}", "services.a.tty is not supported"],
      ["{image: x, env_file: e}", "services.a.env_file is not supported"],
      ["{build: {target: t}}", "services.a.build.target: it is not supported"],
      ["{image: x, networks: [other]}", "services.a.networks names 'other', which is no network of the file"],
      ["{image: x, networks: {default: {ipv4_address: 10.0.0.2}}}", "services.a.networks.default.ipv4_address: it is not supported"],
      ["{image: x, depends_on: [b]}", "services.a.depends_on names 'b', which is no service"],
      ["{image: x, depends_on: {main: {condition: service_healthy}}}", "which has no healthcheck"],
      ["{image: x, depends_on: [a]}", "depends_on has a circle"],
      ["{image: x, volumes: [{type: npipe, target: /t}]}", "the type 'npipe' is not supported"],
    ];
    for (const [service, expected] of cases) expect(problems(service).join("; "), service).toContain(expected);
    expect(problems("{image: x, ports: ['80:80'], restart: always, volumes: ['data:/d']}")).toEqual([]);
    expect(problems("{image: x, volumes: ['d:/d:nocopy']}")).toEqual(["services.a.volumes: 'nocopy' in 'd:/d:nocopy' is not supported"]);
    expect(problems("{image: x}", "volumes: {d: {external: true, driver: local}}\n")).toEqual(["volumes.d.external is not supported"]);
    expect(problems("{image: x}", "secrets: {s: {file: f}}\n")).toEqual(["secrets of the compose file is not supported"]);
    expect(problems("{image: x}", "networks: {n: {external: true}}\n")).toEqual(["networks.n.external is not supported"]);
  });
});
