// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of tasks have this form.
import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { containsIpv4, formatIpv4, parseDestination, parseIpv4Network } from "@aenv/contract";
import {
  checkConfig,
  egressOf,
  loadTask,
  packageContent,
  parseHost,
  parseTaskToml,
  type Task,
  type TaskConfig,
  taskChecksum,
} from "@aenv/terminal-bench/core";
import { describeNeeding, harborPythonPath, type Tree, temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

interface Question {
  readonly documents?: readonly string[];
  readonly hosts?: readonly string[];
  readonly within?: readonly (readonly [network: string, address: string])[];
  readonly folders?: readonly string[];
}

interface Answer {
  readonly documents: readonly (Record<string, unknown> | null)[];
  readonly hosts: readonly (string | null)[];
  readonly within: readonly boolean[];
  readonly folders: readonly (FolderAnswer | null)[];
}

interface FolderAnswer {
  readonly checksum: string | null;
  readonly digest: string;
  readonly verifiers: readonly ({ readonly folder: string | null; readonly image: string | null; readonly hasTests: boolean } | null)[];
}

function askHarbor(question: Question): Answer {
  const input = JSON.stringify({ documents: [], hosts: [], within: [], folders: [], ...question });
  const { stdout, stderr } = spawnSync(harborPythonPath, [join(import.meta.dirname, "read_shapes.py")], {
    input,
    encoding: "utf8",
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    maxBuffer: 64 * 1024 * 1024,
  });
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

function attempt<T>(run: () => T): T | null {
  try {
    return run();
  } catch {
    return null;
  }
}

/** A missing timeout of a verification is null here, and 600 seconds there. */
function withVerifierTimeouts({ verifier, steps, ...config }: TaskConfig): unknown {
  const filled = (one: TaskConfig["verifier"]) => ({ ...one, timeout_sec: one.timeout_sec ?? 600 });
  return { ...config, verifier: filled(verifier), steps: steps?.map((step) => ({ ...step, verifier: filled(step.verifier) })) ?? null };
}

function withoutNulls<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_, one) => (one === null ? undefined : one)));
}

const cpus = fc.constantFrom("0.5", "2", "2.0", '"0.25"', '"3"', "inf", "nan", "true", '"x"', "[]");
const entry = fc.constantFrom(
  ...["pypi.org", "PyPI.org.", "*.pypi.org", "*.10.0.0.1", "*", "a_b.org", "10.0.0.1", "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/255.0.0.0"],
  ...["10.0.0.0/0.0.0.255", "10.0.0.0/", "1.2.3", "2001:DB8::1", "2001:db8::/32", "2001:db8::1/32", "[::1]", "fe80::1%eth0", "host:80"],
  ...["http://a.org", "::", "0.0.0.0/0", "::/0", "1:2:3:4:5:6:7:8", "1::2::3", "10.0.0.0/08", "10.0.0.0/33", "", " ", "a.org/b"],
);
const header = fc.tuple(
  fc.constantFrom("X-Team", "Authorization", "Cookie", "X Team", "X-Api-Key", "é"),
  fc.constantFrom(
    "a",
    "",
    "Bearer abc",
    "Bearer ${TOKEN}",
    "${A}:${B}",
    "${A:-x}",
    "${TOKEN:-x}",
    "${TOKEN:-}",
    "${",
    "a ${B} c",
    "Basic ${A} x",
  ),
);
const name = fc.constantFrom("one", "One", "two words", "a.", "con", "COM1.x", "a/b", "..", "", " ", "测试", "é", "e\u0301", "a:b", "-x");
const text = (value: string) => JSON.stringify(value);
const hostList = fc.array(entry, { maxLength: 2 }).map((all) => `[${all.map(text).join(", ")}]`);
const network = fc.oneof(
  fc.constantFrom("", 'network_mode = "allowlist"\n', 'network_mode = "no-network"\n'),
  fc
    .tuple(fc.constantFrom("allowlist", "no-network", "public"), hostList)
    .map(([mode, hosts]) => `network_mode = "${mode}"\nallowed_hosts = ${hosts}\n`),
  hostList.map((hosts) => `allowed_hosts = ${hosts}\n`),
);
const artifact = fc.constantFrom(
  '"/a"',
  '"/a/../b"',
  '"relative"',
  '{ source = "/a", destination = "b" }',
  '{ source = "/a", destination = "../b" }',
  '{ source = "/a", destination = "manifest.json" }',
  '{ source = "/a", destination = "" }',
  '{ source = "/a", service = " db " }',
  '{ source = "a", service = "db" }',
  '{ source = "/a", service = "-db" }',
  '{ source = "/a", exclude = ["*.log"] }',
);
/** Lines of a table, each with a key of its own. */
const linesOf = (...all: string[]) =>
  fc
    .uniqueArray(fc.constantFrom(...all), { maxLength: 3, selector: (line) => line.split(" ")[0] })
    .map((lines) => lines.map((line) => `${line}\n`).join(""));
const ofEnvironment = linesOf(
  ...["allow_internet = 2", 'allow_internet = "no"', "allow_internet = true", 'memory = "1.5g"', 'memory = "1X"', "storage = 3"],
  ...[
    'storage = "2048K"',
    'memory_mb = "512"',
    "memory_mb = 1536",
    "build_timeout_sec = 1e3",
    'os = "Windows"',
    'os = "mac"',
    "gpus = true",
  ],
  ...['gpu_types = ["H100"]', "gpu_types = [1]", 'tpu = { type = "v6e", topology = " 2x4 " }', 'tpu = { type = "v6e", topology = "8" }'],
  ...['healthcheck = { command = "x", retries = "2" }', "healthcheck = {}", 'workdir = "/a"', "env = { A = 1 }", 'env = { A = "b" }'],
  ...["skills_dir = 1", 'docker_image = ""', "no_such_key = 1"],
);
const ofPhase = linesOf('timeout_sec = "4"', "timeout_sec = []", "user = true", "user = 1.5", 'user = "1000"', "no_such_key = 1");
const ofStep = linesOf(
  ...["min_reward = 0.5", 'min_reward = "0.5"', "min_reward = { a = 1 }", 'min_reward = { a = "x" }', "min_reward = []"],
  ...['healthcheck = { command = "x" }', "healthcheck = 1", 'artifacts = ["/a", { source = "b", service = "db" }]', 'artifacts = ["/a"]'],
);
const part = fc.oneof(
  fc.constantFrom('schema_version = "1.4"\n', 'version = "1.0"\n', "schema_version = 1\n", 'multi_step_reward_strategy = "final"\n'),
  fc.array(artifact, { maxLength: 2 }).map((all) => `artifacts = [${all.join(", ")}]\n`),
  fc
    .tuple(fc.constantFrom("[task]", '[task]\nversion = "2"', '[task]\nversion = ""'), fc.boolean())
    .map(([head, hasName]) => `${head}\n${hasName ? 'name = "a/b"\n' : ""}`),
  fc.tuple(cpus, network).map(([value, hosts]) => `[environment]\ncpus = ${value}\n${hosts}`),
  fc.tuple(ofEnvironment, network).map(([lines, hosts]) => `[environment]\n${lines}${hosts}`),
  fc
    .tuple(fc.constantFrom("http", "sse", "stdio"), header)
    .map(
      ([transport, [key, value]]) =>
        `[[environment.mcp_servers]]\nname = "a"\ntransport = "${transport}"\nurl = "http://a"\ncommand = "a"\nheaders = { ${text(key)} = ${text(value)} }\n`,
    ),
  fc.tuple(network, ofPhase).map(([hosts, lines]) => `[agent]\n${hosts}${lines}`),
  fc
    .tuple(
      network,
      fc.constantFrom("", 'environment_mode = "shared"\n', 'environment_mode = "separate"\n'),
      fc.constantFrom("", "[verifier.environment]\ncpus = 1.5\n", '[[verifier.collect]]\ncommand = "x"\nservice = " db "\n'),
    )
    .map(([hosts, mode, inner]) => `[verifier]\n${hosts}${mode}${inner}`),
  fc
    .tuple(fc.uniqueArray(name, { minLength: 1, maxLength: 2 }), ofStep)
    .map(([names, lines]) => names.map((one) => `[[steps]]\nname = ${text(one)}\n${lines}`).join("")),
);

describeNeeding("harbor", "Harbor and this implementation", () => {
  it("read documents of many shapes alike", { timeout: 180_000 }, () => {
    // Keys of the root come before tables.
    const isRoot = (one: string) => !one.startsWith("[");
    const documents = fc
      .sample(fc.array(part, { minLength: 1, maxLength: 3 }), { numRuns: 3_000, seed: 25 })
      .map((parts) => [...parts.filter(isRoot), ...parts.filter((one) => !isRoot(one))].join(""));
    const { documents: theirs } = askHarbor({ documents });
    const counts = { read: 0, refused: 0, stricter: 0 };
    for (const [i, source] of documents.entries()) {
      const ours = attempt(() => parseTaskToml(source));
      const config = theirs[i] ?? null;
      const problems = ours === null ? [] : checkConfig(ours);
      const isRefused = ours === null || problems.length > 0;
      if (config === null) {
        expect(isRefused, source).toBe(true);
        counts.refused++;
      } else if (problems.length > 0) counts.stricter++;
      else {
        expect(ours, source).not.toBeNull();
        if (ours !== null) expect(withVerifierTimeouts(ours), source).toMatchObject(withoutNulls(config));
        counts.read++;
      }
    }
    expect(counts.read).toBeGreaterThan(300);
    expect(counts.refused).toBeGreaterThan(300);
    expect(counts.stricter).toBe(0);
  });

  describe("read hosts", () => {
    const octet = fc.nat({ max: 255 });
    const ipv4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join("."));
    const written = fc.oneof(
      entry,
      fc.domain(),
      fc.ipV4(),
      fc.ipV6(),
      fc.tuple(fc.ipV4(), fc.nat({ max: 40 })).map((parts) => parts.join("/")),
      fc.tuple(fc.ipV6(), fc.nat({ max: 140 })).map((parts) => parts.join("/")),
      fc
        .tuple(ipv4, fc.constantFrom("255.255.0.0", "0.0.255.255", "255.0.255.0", "0.0.0.0", "255.255.255.255"))
        .map((parts) => parts.join("/")),
      fc.nat({ max: 32 }).map((bits) => `0.0.0.0/${bits}`),
      fc.nat({ max: 128 }).map((bits) => `2001:db8::/${bits}`),
    );

    it("alike", { timeout: 60_000 }, () => {
      const hosts = fc.sample(written, { numRuns: 5_000, seed: 25 });
      // Newer versions of Python write an address of IPv4 in one of IPv6 in another way.
      const known = hosts.filter((one) => !/^(?:0:){5}ffff:|^::ffff:|\..*:|:.*\./i.test(one));
      const { hosts: theirs } = askHarbor({ hosts: known });
      expect(known.map((one) => attempt(() => parseHost(one)))).toEqual(theirs);
    });

    it("and a sandbox reaches exactly the addresses of a network", { timeout: 60_000 }, () => {
      const pairs = fc.sample(fc.tuple(fc.nat({ max: 32 }), ipv4, ipv4, fc.boolean()), { numRuns: 3_000, seed: 25 });
      const within = pairs.map(([bits, base, other, isNear]): readonly [string, string] => {
        const first = parseIpv4Network(`${base}/${bits}`);
        const network = `${formatIpv4(first?.address ?? 0)}/${bits}`;
        return [network, isNear ? base : other];
      });
      const { within: theirs } = askHarbor({ within });
      const ours = within.map(([network, address]) => {
        const egress = egressOf({ mode: "allowlist", hosts: [parseHost(network)] });
        const [allowed = ""] = typeof egress === "object" && egress !== null ? egress.allow : [];
        const destination = parseDestination(allowed);
        const one = parseIpv4Network(address);
        return destination?.kind === "network" && one !== null && containsIpv4(destination.network, one);
      });
      expect(ours).toEqual(theirs);
      expect(egressOf({ mode: "allowlist", hosts: ["2001:db8::/32", "pypi.org"] })).toEqual({ allow: ["pypi.org"] });
    });
  });

  it("read folders of many shapes alike", { timeout: 180_000 }, async () => {
    const line = fc.constantFrom(
      "*.log",
      "!keep.log",
      "drafts/",
      "/drafts",
      "drafts/*",
      "**/x.log",
      "in/**",
      "*",
      "!*.sh",
      "# a",
      "",
      "test.sh",
      "a\\*",
      "[ab].log",
      "in",
    );
    const rules = fc.option(
      fc.array(line, { maxLength: 4 }).map((lines) => lines.join("\n")),
      { nil: null },
    );
    const toml = fc.constantFrom(
      "",
      '[verifier]\nenvironment_mode = "separate"',
      "[verifier.environment]\nmemory_mb = 64",
      '[verifier.environment]\ndocker_image = "own"',
      '[environment]\ndocker_image = "agent"\n[verifier]\nenvironment_mode = "separate"',
      '[environment]\nos = "windows"',
      '[[steps]]\nname = "a b"\n[steps.verifier.environment]\nmemory_mb = 64',
      '[verifier]\nenvironment_mode = "separate"\n[[steps]]\nname = "a b"',
    );
    const link = fc.constantFrom(null, "../../outside", "../solution", "..", "nothing", "a.log");
    const shape = fc.record({
      toml,
      tests: rules,
      inner: rules,
      step: rules,
      link,
      isOwn: fc.boolean(),
      isStepOwn: fc.boolean(),
      isGitignored: fc.boolean(),
    });
    using tree = temporaryTree({ outside: "" });
    const shapes = fc.sample(shape, { numRuns: 80, seed: 25 });
    const folders = shapes.map((one, i) => writeTask(tree, String(i), one));
    const { folders: theirs } = askHarbor({ folders });
    let read = 0;
    for (const [i, folder] of folders.entries()) {
      const shown = JSON.stringify(shapes[i]);
      const task = await loadTask(folder).catch(() => null);
      const answer = theirs[i] ?? null;
      expect(task === null, shown).toBe(answer === null);
      if (task === null || answer === null) continue;
      read++;
      const checksum = answer.checksum === null ? null : await taskChecksum(folder);
      const ours = { checksum, digest: (await packageContent(folder)).hash, verifiers: verifiersOf(task) };
      expect(ours, shown).toEqual(answer);
    }
    expect(read).toBeGreaterThan(25);
  });
});

interface Shape {
  readonly toml: string;
  readonly tests: string | null;
  readonly inner: string | null;
  readonly step: string | null;
  readonly link: string | null;
  readonly isOwn: boolean;
  readonly isStepOwn: boolean;
  readonly isGitignored: boolean;
}

function writeTask(tree: Tree, name: string, { toml, tests, inner, step, link, isOwn, isStepOwn, isGitignored }: Shape): string {
  const hasSteps = toml.includes("[[steps]]");
  const optional = {
    ".harborignore": "*",
    "environment/.harborignore": "*",
    "tests/in/.harborignore": inner,
    "tests/.harborignore": tests,
  };
  const all: Record<string, string | null> = {
    "task.toml": toml,
    "instruction.md": "Go.",
    "trajectory.json": "{}",
    "environment/Dockerfile": "FROM x",
    "tests/test.sh": "",
    "tests/test.bat": "",
    "solution/solve.sh": "",
    ...Object.fromEntries(
      ["tests", "tests/in", "tests/drafts", "environment"].flatMap((at) =>
        ["a.log", "keep.log", "x.log"].map((file) => [`${at}/${file}`, file]),
      ),
    ),
    ...optional,
    "tests/Dockerfile": isOwn ? "FROM x" : null,
    ".gitignore": isGitignored ? "x.log\n" : null,
    ...(hasSteps && {
      "steps/a b/instruction.md": "Go.",
      "steps/a b/tests/a.log": "",
      "steps/a b/tests/in/keep.log": "",
      "steps/a b/tests/.harborignore": step,
      "steps/a b/tests/Dockerfile": isStepOwn ? "FROM x" : null,
    }),
  };
  const files = Object.entries(all).flatMap(([path, content]) => (content === null ? [] : [[`${name}/${path}`, content] as const]));
  tree.write(Object.fromEntries(files));
  const folder = join(tree.path, name);
  if (link !== null) symlinkSync(link, join(folder, "tests/link.log"));
  return folder;
}

function verifiersOf(task: Task): FolderAnswer["verifiers"] {
  const passes = task.steps.length === 0 ? [task] : task.steps;
  return passes.map(({ verifierEnvironment: one }) => {
    if (one === null) return null;
    const { definition } = one;
    const own = definition.kind === "dockerfile" || definition.kind === "none" ? definition.context : null;
    return { folder: own?.split("/").at(-1) ?? null, image: one.config.docker_image, hasTests: one.hasTests };
  });
}
